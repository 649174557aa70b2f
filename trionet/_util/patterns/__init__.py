"""Regular expressions that are matched in a bounded number of steps.

The problem: Python's ``re`` backtracks. An ordinary expression such as ``^CN=(.*?),OU=(.*?)$``, met
by a text that a stranger wrote for it, can occupy it for hours, and it holds the interpreter's lock
meanwhile, so that not even a thread would help.

The choice: the textbook simulation of a nondeterministic automaton, in which all states advance at
once (Thompson, 1968), in the order of their priority, so that groups are those that backtracking
would find (Pike), with the transitions that were met remembered (a lazy DFA). What it cannot
express, such as back-references, is backtracked with a maximum number of steps. Rejected: the
bindings of RE2, a compiled dependency of every installation, without what Java has beyond it.

An expression is parsed in time linear in its length, and each of its parts is built only a bounded
number of times, so that an expression, too, may be anybody's.
"""
