"""Hatchling's build hook: compile what runs for every request, with mypyc, into a wheel.

A module asks for it with the line `# Compiled by mypyc.` below its docstring: those that run for
every request, from the readable socket through the partition's log to the response, and the classes
whose attributes they read, since calls within the compiled group are C calls. What runs once per
connection, topic or start would gain nothing. Their `.py` stay in the wheel, for tracebacks and for
`TRIONET_PURE=1`; the extension modules lie beside them and are what Python imports first.

Nothing needs them: where they cannot be compiled the wheel is pure Python, and one line says why.
`TRIONET_PURE` decides otherwise: 1 does not compile, and 0 does not build without.

The work itself is done by this file as a program, in a child process: mypyc and setuptools print as
they like, change the process that they run in, and end it when something is wrong.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: All compiled code is in one library, `trionet__mypyc.*.so`, and the modules only refer to it. It
#: lies beside the package, because mypyc finds out from there what `__file__` is in each module.
GROUP = "trionet"
#: Of the test extra, which says which versions: the mypy that has checked the modules compiles
#: them.
TOOLS = ("mypy", "setuptools")
#: The line that marks a module as one to compile.
MARK = "# Compiled by mypyc."
#: In the names of modules that loop over bytes with native integers, and the flags that they gain
#: by: encoding a batch takes a sixth less time than with -O1.
LOOPS = "_typed_"
OF_LOOPS = ["-O2"]


class CannotCompile(Exception):
    """The wheel will be pure Python; the text says why."""


class HotPathHook(BuildHookInterface[BuilderConfig]):
    """Adds the compiled modules to a wheel."""

    def dependencies(self) -> list[str]:
        """What a build needs besides hatchling: nothing, if it will not compile."""
        if obstacle() is not None:
            return []
        test = self.metadata.core.optional_dependencies["test"]
        tools = [line for line in test if re.split(r"\W", line)[0] in TOOLS]
        # mypy looks up the types of what the modules call.
        return [*tools, *self.metadata.core.dependencies]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell hatchling what to pack; called before a wheel is packed."""
        if version == "editable":
            return  # what is edited runs as it is
        must = os.environ.get("TRIONET_PURE") == "0"
        files = marked_files(Path(self.root))
        # Removed when the process ends: hatchling packs from it after this call, or fails.
        self._folder = tempfile.TemporaryDirectory(prefix="trionet-compiled-")
        try:
            built = compiled(files, Path(self.root), Path(self._folder.name), explain=must)
        except CannotCompile as why:
            if must:
                self.app.abort(f"trionet: TRIONET_PURE=0 asks for a compiled wheel, but {why}")
            if not is_pure_asked_for():
                print(
                    f"trionet: building pure Python, because {why}; "
                    "it does the same, with fewer requests per second",
                    file=sys.stderr,
                )
            return
        build_data.update(pure_python=False, infer_tag=True)
        # Of the compiled wheel alone: what mypyc's code calls in a library of its own.
        build_data["dependencies"] += self.config.get("runtime-dependencies", [])
        build_data["force_include"].update(
            {str(path): path.relative_to(built).as_posix() for path in sorted(built.rglob("*.so"))}
        )


def is_pure_asked_for() -> bool:
    """Whether the user has decided against compiled code; as `import trionet` understands it."""
    return os.environ.get("TRIONET_PURE", "0") not in {"", "0"}


def obstacle() -> str | None:
    """Why nothing can be compiled here, as far as that can be seen without trying."""
    if is_pure_asked_for():
        return "TRIONET_PURE is set"
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "only CPython with its global lock runs the compiled modules"
    if os.name == "nt":
        return "on Windows nobody has tried the compiled modules"
    if compiler() is None:
        return "there is no C compiler"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python.h is missing (Debian and Ubuntu: apt-get install python3-dev)"
    return None


def compiler() -> str | None:
    """The C compiler's command: the user's choice, else what Python was built with, else any."""
    chosen = os.environ.get("CC")
    commands = [chosen] if chosen else [sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    for command in commands:
        if command and shutil.which(shlex.split(command)[0]):
            return str(command)
    return None


def marked_files(root: Path) -> list[str]:
    """Return the paths, relative to ``root``, of the modules that are marked to be compiled."""
    return [
        path.relative_to(root).as_posix()
        for path in sorted((root / "trionet").rglob("*.py"))
        if MARK in path.read_text("utf-8").splitlines()
    ]


def compiled(files: list[str], root: Path, folder: Path, *, explain: bool) -> Path:
    """Compile, and return the folder with the extension modules, laid out as in a wheel.

    Args:
        files: the modules' paths, relative to ``root``: tracebacks of compiled code show them, the
            same on every machine.
        root: the source tree.
        folder: an empty one, for everything that is written.
        explain: whether an error has all that the tools said, not only its first line.

    Raises:
        CannotCompile: with the reason.
    """
    why = obstacle()
    if why is not None:
        raise CannotCompile(why)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), str(folder), *files],
        cwd=root,
        env={**os.environ, "CC": compiler() or "", "MYPYPATH": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        lines = done.stdout.splitlines() or [f"exit status {done.returncode}"]
        # A compiler's first error says most, an exception's last line.
        first = next((line for line in lines if " error: " in line), lines[-1])
        raise CannotCompile(f"compiling failed: {done.stdout if explain else first.strip()}")
    return folder / "built"


def compile_files(folder: Path, files: list[str]) -> None:
    """Compile; what this process prints and how it ends is the answer.

    Args:
        folder: where `built` gets the extension modules; the rest is scratch.
        files: the sources, below the current folder.
    """
    from mend_generated_c import mended
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    # mypy's own defaults, not pyproject.toml's strictness, and silence about all other modules: a
    # newer trio with better types must not keep a user from a compiled wheel.
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    options.append(f"--cache-dir={os.devnull}")
    generated = folder / "generated"
    extensions = mypycify(
        [*options, *files],
        # What mypyc writes is mostly calls into Python: requests take the same time with -O1, -O2,
        # -O3 and one big C file, and this compiles fastest. Loops over bytes gain by OF_LOOPS.
        opt_level="1",
        multi_file=True,
        debug_level="0",  # no paths of this machine
        group_name=GROUP,
        target_dir=str(generated),
    )
    for path in generated.glob("__native*.c"):
        path.write_text(mended(path.read_text("utf-8")), "utf-8")
    for extension in extensions:
        # A warning that only a newer compiler knows is no reason to go without.
        flags = extension.extra_compile_args
        extension.extra_compile_args = [flag for flag in flags if flag != "-Werror"]
        if sys.platform == "linux":
            # Calls from one module to another are direct, not through a table, and functions can be
            # inlined: nothing but the library itself calls what it consists of.
            extension.extra_compile_args.append("-fvisibility=hidden")
            # A request makes hundreds of calls into Python, each without a jump through the PLT:
            # 2 to 4 % of an echo.
            extension.extra_compile_args += ["-fno-plt", "-fno-semantic-interposition"]
            extension.extra_link_args.append("-s")

    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    build = build_ext(Distribution({"name": "trionet", "ext_modules": extensions}))
    build.build_lib = str(folder / "built")
    build.build_temp = str(folder / "objects")
    build.parallel = cores
    build.ensure_finalized()

    def build_extensions() -> None:
        # setuptools builds several extension modules at a time, but compiles the files of one of
        # them one by one, and here nearly all files belong to one.
        compile_files = build.compiler.compile

        def compile_at_once(
            sources: list[str], *args: Any, extra_postargs: list[str], **options: Any
        ) -> list[str]:
            def compile_one(file: str) -> list[str]:
                flags = [*extra_postargs, *(OF_LOOPS if LOOPS in file else [])]
                objects: list[str] = compile_files([file], *args, extra_postargs=flags, **options)
                return objects

            with ThreadPoolExecutor(cores) as pool:
                return [name for names in pool.map(compile_one, sources) for name in names]

        build.compiler.compile = compile_at_once
        build_ext.build_extensions(build)

    build.build_extensions = build_extensions
    build.run()
    # What compiles can still be refused by Python, for instance a class whose base has `__slots__`.
    package = Path(files[0]).parts[0]
    shutil.copytree(package, folder / "check" / package)
    shutil.copytree(folder / "built", folder / "check", dirs_exist_ok=True)
    sys.path.insert(0, str(folder / "check"))
    for file in files:
        import_module(file.removesuffix(".py").replace("/", "."))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(obstacle() or "")
    else:
        sys.path.insert(0, str(Path(__file__).parent))  # not there with PYTHONSAFEPATH
        compile_files(Path(sys.argv[1]), sys.argv[2:])
