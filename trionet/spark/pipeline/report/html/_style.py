"""The style sheet of the page: a light and a dark scheme, for screen and print."""

from __future__ import annotations

from typing import Final

# Eight colours per scheme: the color-blind safe palette of Okabe and Ito, with a darker yellow on
# white, and lighter blue and black on black.
_LIGHT: Final = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#b8a800",
    "#777777",
)
_DARK: Final = (
    "#4da3e0",
    "#f0b030",
    "#2cc295",
    "#f07a35",
    "#e095c0",
    "#8fd0f5",
    "#f0e442",
    "#aaaaaa",
)
SERIES: Final = len(_LIGHT)


def _scheme(
    background: str, text: str, faint: str, line: str, alarm: str, series: tuple[str, ...]
) -> str:
    colours = "".join(f"--c{number}:{colour};" for number, colour in enumerate(series))
    return (
        f"--background:{background};--text:{text};--faint:{faint};--line:{line};"
        f"--alarm:{alarm};{colours}"
    )


def _series(number: int) -> str:
    colour = f"var(--c{number})"
    return (
        f".s{number}{{stroke:{colour}}}.f{number}{{fill:{colour}}}.b{number}{{background:{colour}}}"
    )


STYLE: Final = f"""
:root{{color-scheme:light dark;
{_scheme("#ffffff", "#1a1a1a", "#666666", "#dddddd", "#c00020", _LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{
{_scheme("#14171a", "#e6e6e6", "#9aa0a6", "#33383d", "#ff6b7d", _DARK)}}}}}
body{{margin:0 auto;max-width:60rem;padding:1rem;background:var(--background);color:var(--text);
font:15px/1.45 system-ui,sans-serif}}
h1{{font-size:1.5rem;margin:.5rem 0}}
h2{{font-size:1.15rem;margin:2rem 0 .5rem}}
p,figcaption{{color:var(--faint)}}
figure{{margin:1.2rem 0}}
figcaption{{font-weight:600;margin-bottom:.2rem}}
svg{{display:block;width:100%;height:auto;font:12px system-ui,sans-serif}}
svg text{{fill:var(--faint)}}
.end{{text-anchor:end}}
.middle{{text-anchor:middle}}
.grid{{stroke:var(--line);stroke-width:1}}
.line{{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}}
.hit{{fill:transparent}}
.hit:hover{{fill:var(--faint)}}
.heat{{fill:var(--c0)}}
.mark line{{stroke:var(--alarm);stroke-width:1;stroke-dasharray:2 3}}
.mark path{{fill:var(--alarm)}}
.legend{{list-style:none;margin:.3rem 0;padding:0;display:flex;flex-wrap:wrap;gap:.1rem 1rem;
font-size:.85rem;overflow-wrap:anywhere}}
.key{{display:inline-block;width:.8em;height:.8em;margin-right:.35em;border-radius:2px}}
.key.alarm{{background:var(--alarm)}}
.wide{{overflow-x:auto}}
table{{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}}
th,td{{padding:.2rem .7rem .2rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line)}}
th{{color:var(--faint);font-weight:600}}
td{{max-width:24rem;overflow-wrap:anywhere}}
.wide td:not(.number){{min-width:5rem}}
.number{{text-align:right;white-space:nowrap}}
{"".join(map(_series, range(SERIES)))}
@media print{{body{{max-width:none}}figure,tr{{break-inside:avoid}}}}
""".strip()
