"""The style of all pages and notebook outputs, light and dark, and the frame of a page.

Colours of labels differ in hue alone (OKLCH), so that all are equally readable. Nothing is loaded
from elsewhere, and there are no scripts.
"""

from __future__ import annotations

from fuda.render.text import safe

_HUES = (255, 145, 55, 320, 195, 25, 95, 290, 170, 225, 345, 75)

_CSS = """
.fuda{--ink:#1d2330;--soft:#5b6474;--line:#dde1e8;--paper:#fff;--panel:#f6f7f9;--bad:#b3261e;--good:#1b6e3c;
--chip-l:.91;--chip-c:.065;--text-l:.36;--text-c:.1;--arc:#8a94a6;
color:var(--ink);background:var(--paper);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue","Noto Sans",sans-serif;-webkit-text-size-adjust:100%}
@media(prefers-color-scheme:dark){.fuda{--ink:#e7eaf0;--soft:#9fa8b8;--line:#343b47;--paper:#14171c;
--panel:#1c2027;--bad:#ff8a80;--good:#7fd6a0;--chip-l:.36;--chip-c:.075;--text-l:.93;--text-c:.05;--arc:#7b8598}}
.fuda *{box-sizing:border-box}
.fuda bdi{unicode-bidi:isolate}
.fuda h1{font-size:1.5em;line-height:1.25;margin:0 0 .25em;font-weight:650;letter-spacing:-.01em}
.fuda h2{font-size:1.1em;margin:2em 0 .6em;font-weight:650}
.fuda p{margin:.4em 0}
.fuda .soft{color:var(--soft)}
.fuda .small{font-size:.85em}
.fuda .item{padding:.7em 0;border-top:1px solid var(--line)}
.fuda .item:first-child{border-top:0}
.fuda .name{color:var(--soft);font-size:.8em;font-variant-numeric:tabular-nums;margin-bottom:.15em}
.fuda .flow{line-height:1.35}
.fuda .node{display:inline-block;vertical-align:top;text-align:left;margin:0 0 .45em;max-width:100%}
.fuda .word{display:block;padding:0 .22em;overflow-wrap:anywhere}
.fuda .bar{display:block;height:1.45em;font-size:.72em;line-height:1.45em;padding:0 .45em;white-space:nowrap;
font-weight:600;letter-spacing:.02em;background:var(--chip);color:var(--chip-ink);font-variant-numeric:tabular-nums}
.fuda .bar i{font-style:normal;font-weight:400;opacity:.8;margin-left:.35em}
.fuda .first{border-top-left-radius:.5em;border-bottom-left-radius:.5em;margin-left:.25em}
.fuda .last{border-top-right-radius:.5em;border-bottom-right-radius:.5em;margin-right:.25em}
.fuda .first:not(.last){width:0;min-width:100%;position:relative;z-index:1}
.fuda .gold{background:none;border:1.5px solid var(--chip-edge);border-width:1.5px 0;margin-top:2px;
line-height:1.2em;color:var(--ink)}
.fuda .gold.first{border-left-width:1.5px}
.fuda .gold.last{border-right-width:1.5px}
.fuda .blank{background:none;color:var(--soft)}
.fuda .wrong .word{text-decoration:underline wavy var(--bad) 1.2px;text-underline-offset:.22em}
.fuda .here .word{font-weight:700;background:var(--line);border-radius:.3em}
.fuda .scroll{overflow-x:auto;max-width:100%}
.fuda svg{display:block;font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
.fuda svg text{fill:var(--ink)}
.fuda svg .arc{fill:none;stroke:var(--arc);stroke-width:1.2}
.fuda svg .tip{fill:var(--arc)}
.fuda svg .chip{fill:var(--chip)}
.fuda svg .chip-text{fill:var(--chip-ink);font-size:11px;font-weight:600}
.fuda svg .gold-chip{fill:none;stroke:var(--chip-edge);stroke-width:1.3}
.fuda svg .gold-text{fill:var(--ink);font-size:11px;font-weight:600}
.fuda svg .wrong-word{text-decoration:underline wavy var(--bad)}
.fuda .k{--chip:var(--panel);--chip-ink:var(--soft);--chip-edge:var(--soft);--chip-solid:var(--soft)}
.fuda .legend{display:flex;flex-wrap:wrap;gap:.4em .5em;margin:.6em 0 .2em;font-size:.85em;align-items:center}
.fuda .chip{display:inline-block;background:var(--chip);color:var(--chip-ink);border-radius:.5em;
padding:0 .5em;font-size:.85em;font-weight:600}
.fuda table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.93em;margin:.3em 0;
color:inherit;background:none}
.fuda th{font-weight:600;color:var(--soft);font-size:.9em}
.fuda th,.fuda td{padding:.28em .8em .28em 0;text-align:right;border:0;background:none;white-space:nowrap}
.fuda th:first-child,.fuda td:first-child,.fuda .left{text-align:left}
.fuda tbody tr{border-top:1px solid var(--line);background:none}
.fuda tr.total td{font-weight:650}
.fuda .heat td{min-width:2.6em;text-align:center;padding:.28em .5em}
.fuda .heat th{padding:.28em .5em}
.fuda .heat td.cell{background:color-mix(in oklab,var(--tone) calc(var(--x)*1%),transparent)}
.fuda .why{width:100%;table-layout:fixed;max-width:58em}
.fuda .why td{vertical-align:top}
.fuda .why td.left{white-space:normal;overflow-wrap:anywhere}
.fuda .why tbody tr{border:0}
.fuda .why .kind td{color:var(--soft);font-size:.9em;padding-top:1.1em}
.fuda .why .meter{width:30%;padding-right:1em}
.fuda .why .value{width:6.5em}
.fuda .track{display:flex;height:.95em;margin-top:.25em;
background:linear-gradient(var(--line),var(--line)) 50% 0/1px 100% no-repeat}
.fuda .half{width:50%;display:flex}
.fuda .half.minus{justify-content:flex-end}
.fuda .fill{height:100%;background:var(--chip-solid);min-width:1px}
.fuda .plus .fill{border-radius:0 .25em .25em 0}
.fuda .minus .fill{border-radius:.25em 0 0 .25em}
.fuda .versus{font-size:1.15em;margin:.2em 0 .6em}
.fuda mark{background:none;color:inherit;font-weight:700;border-bottom:2px solid var(--chip-solid)}
@media(max-width:520px){.fuda{font-size:14px}.fuda .why .meter{width:18%}.fuda .why .value{width:5.6em}}
"""
_TONES = (
    "{--chip:oklch(var(--chip-l) var(--chip-c) var(--h));"
    "--chip-ink:oklch(var(--text-l) var(--text-c) var(--h));"
    "--chip-edge:oklch(.62 .13 var(--h));--chip-solid:oklch(.64 .13 var(--h))}"
)
_PAGE = "body{margin:0;background:#fff}@media(prefers-color-scheme:dark){body{background:#14171c}}"
_PAGE += ".page{max-width:70rem;margin:0 auto;padding:2.2rem clamp(1rem,4vw,2.5rem) 4rem}"


def style() -> str:
    """Return the style element that every output contains."""
    tones = "".join(f".fuda .k{i}{{--h:{hue}}}" for i, hue in enumerate(_HUES))
    every = ",".join(f".fuda .k{i}" for i in range(len(_HUES)))
    return f"<style>{_CSS.strip()}\n{tones}{every}{_TONES}</style>"


def tone(kinds: dict[str, int], kind: str) -> str:
    """Return the class of the colour of a kind of label; a neutral one for other kinds."""
    return f"k{kinds[kind] % len(_HUES)}" if kind in kinds else "k"


def fragment(body: str) -> str:
    """Return HTML for a notebook: the style, and a body in it."""
    return f'{style()}<div class="fuda">{body}</div>'


def page(title: str, body: str) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
        The title, any text.
    body : str
        HTML.

    Returns
    -------
    str
        A page that loads nothing and runs nothing.

    Examples
    --------
    >>> text = page("Names", "<p>Ana lives in Lima.</p>")
    >>> "<title>Names</title>" in text, "<p>Ana lives in Lima.</p>" in text
    (True, True)
    """
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{safe(title)}</title><style>{_PAGE}</style>{style()}</head>\n"
        f'<body class="fuda"><main class="page"><h1>{safe(title)}</h1>{body}</main></body></html>\n'
    )
