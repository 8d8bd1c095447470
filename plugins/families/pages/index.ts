// HTML pages: templates with escaped values, safe display of untrusted text, and the document with its Content-Security-Policy.
import { createHash } from 'node:crypto'
import type { HostContext } from '../../../core/plugin.ts'

export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = string | Markup | readonly Part[] | undefined

function write(part: Part): string {
  if (part === undefined) return ''
  if (typeof part === 'string') return part.replace(/[&<>"'`]/g, character => `&#${character.charCodeAt(0)};`)
  return part instanceof Markup ? part.text : part.map(write).join('')
}

/** Escapes values in a template. Attribute values need double quotes. */
export const html = (strings: TemplateStringsArray, ...parts: readonly Part[]): Markup =>
  new Markup(strings.map((string, index) => string + write(parts[index])).join(''))

const MAX_INPUT = 8_000
const SPACES = /[\s\p{Zs}\p{Zl}\p{Zp}\u2800]+/gu
/** Matches characters that are invisible or change their neighbours: control, format, private use, fillers. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu
/** Matches more than three combining marks, which overlap other lines. */
const STACKED = /(\p{M}{3})\p{M}+/gu

const clean = (text: string) =>
  text.slice(0, MAX_INPUT).replace(SPACES, ' ').replace(INVISIBLE, '').replace(STACKED, '$1').replace(/ +/g, ' ').trim()

export function shown(text: string, most = 80): string {
  const characters = [...clean(text)]
  return characters.length <= most
    ? characters.join('')
    : `${characters
        .slice(0, most - 1)
        .join('')
        .trimEnd()}…`
}

/** Shortens a host name at its front, because its end identifies the owner. */
export function shownHost(host: string, most = 253): string {
  const characters = [...clean(host)]
  return characters.length <= most ? characters.join('') : `…${characters.slice(1 - most).join('')}`
}

export const quoted = (text: string): string => `“${text.replace(/["“”„‟«»″＂]/g, "'")}”`

/** Returns a safe URL; undefined unless http, https, mailto or a local path. */
export function safeHref(href: string): string | undefined {
  if (/^\/(?![/\\])[\x21-\x7e]*$/.test(href)) return href
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url.href : undefined
}

export interface Page {
  readonly html: string
  readonly policy: string
}

const STYLE = `
:root{--page:#f3f4f6;--card:#fff;--text:#1b1f24;--muted:#57606a;--line:#d5dae0;--edge:#6a737d;--box:#f3f4f6}
:root{--warn:#fff4d6;--warnEdge:#9a6700;--fault:#ffebe9;--faultEdge:#b3261e;--brand:#1f5fbf;--onBrand:#fff;--link:#1f5fbf}
*,*::before,*::after{box-sizing:border-box}
html{color-scheme:light dark;font:100%/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;-webkit-text-size-adjust:100%}
body{margin:0;min-height:100vh;padding:clamp(1rem,4vh,4.5rem) 1rem 2rem;background:var(--page);color:var(--text)}
header,main,footer{max-width:32rem;margin:0 auto;overflow-wrap:anywhere}
header{display:flex;align-items:center;gap:.75rem;margin-bottom:1.25rem;padding:0 .25rem;font-size:1.0625rem;font-weight:600}
header p{margin:0;min-width:0}
header img{flex:none;display:block;max-width:9rem;height:2.25rem;object-fit:contain}
main{background:var(--card);border:1px solid var(--line);border-radius:.875rem;padding:clamp(1.125rem,6vw,2rem)}
footer{margin-top:1.25rem;padding:0 .25rem;color:var(--muted);font-size:.875rem}
footer p{margin:0 0 .375rem}
h1{margin:0 0 .75rem;font-size:1.5rem;line-height:1.25;letter-spacing:-.01em;text-wrap:balance}
h2{margin:1.5rem 0 .5rem;font-size:.875rem;font-weight:600;line-height:1.4;color:var(--muted)}
h3{margin:0;font-size:1rem;font-weight:400}
p,ul,dl{margin:0 0 .75rem}
a{color:var(--link);text-underline-offset:.15em}
.small{font-size:.875rem;color:var(--muted)}
.box{margin:0 0 .5rem;padding:.625rem .875rem;background:var(--box);border:1px solid var(--line);border-radius:.5rem;font-size:1.125rem;font-weight:600;line-height:1.4;overflow:hidden}
.wide>*{max-width:46rem}
.banner{margin-left:auto;padding:.25rem .625rem;border:1px solid var(--warnEdge);border-radius:.5rem;background:var(--warn);font-size:.875rem;font-weight:400}
.facts{gap:.625rem 1rem;margin-bottom:1rem}
.facts .small{display:block}
.facts .list>li{padding:0;border:0}
.facts .list,.facts .note{display:block;margin:0}
.block{display:flex;align-items:start;gap:.75rem;margin:0 0 .75rem;padding:.625rem .875rem;background:var(--box);border:1px solid var(--line);border-radius:.5rem}
pre{flex:1;min-width:0;margin:0;white-space:pre-wrap}
pre code{display:block}
.copy{flex:none;width:auto;min-height:2rem;margin:-.25rem -.375rem -.25rem 0;padding:.125rem .625rem;border-width:1px;font-size:.875rem}
.choice .button{width:auto}
.wide details{font-size:1rem}
.scope{font-size:.875rem;color:var(--muted)}
.note{margin:.5rem 0 .75rem;padding:.625rem .875rem;background:var(--box);border-left:.25rem solid var(--edge);border-radius:.25rem}
.warn{background:var(--warn);border-color:var(--warnEdge)}
.fault{background:var(--fault);border-color:var(--faultEdge)}
.list{padding:0;list-style:none}
.list>li{padding:.375rem 0;border-top:1px solid var(--line)}
.list>li:first-child{border-top:0}
code{font:.9375em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
dl{display:grid;grid-template-columns:minmax(0,auto) minmax(0,1fr);gap:.125rem .875rem}
dt{color:var(--muted)}
dd{margin:0}
details{margin:1.25rem 0 0;font-size:.875rem}
summary{display:inline-block;padding:.25rem 0;color:var(--link);cursor:pointer;text-decoration:underline;text-underline-offset:.15em}
summary::-webkit-details-marker{display:none}
details dl{display:block;margin:.375rem 0 0}
details dt{margin-top:.375rem}
main>:last-child{margin-bottom:0}
form{margin:0}
form+p{margin-top:1rem}
.choice{display:flex;flex-wrap:wrap;gap:.75rem;padding-top:.75rem}
input:not([type=hidden]){display:block;width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid var(--edge);border-radius:.5rem;background:var(--card);color:var(--text);font:inherit}
button,.button{flex:1 1 8rem;display:block;width:100%;min-height:2.875rem;padding:.625rem 1rem;border:2px solid var(--edge);border-radius:.5rem;background:var(--card);color:var(--text);font:inherit;font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
.choice button{width:auto}
h3 .box{display:block;font-size:1rem}
[hidden]{display:none}
button:hover,.button:hover{text-decoration:underline}
.main{background:var(--brand);border-color:var(--link);color:var(--onBrand)}
:focus-visible{outline:3px solid var(--link);outline-offset:3px;border-radius:.25rem}
button:focus-visible,.button:focus-visible{border-radius:.5rem}
.grants>li{padding:1rem 0}
.grants dl{margin:.5rem 0 .75rem;font-size:.9375rem}
.hidden{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (max-width:26rem){dl,header{display:block}header img{margin-bottom:.5rem}dd{margin-bottom:.375rem}.banner{margin-top:.5rem}}
@media (min-height:30rem) and (min-width:40rem){.decision{position:sticky;bottom:0;padding-bottom:.75rem;background:var(--card)}}
@media (prefers-color-scheme:dark){
:root{--page:#121417;--card:#1c2024;--text:#e9ebee;--muted:#a9b1ba;--line:#363c43;--edge:#8d96a0;--box:#121417}
:root{--warn:#33290b;--warnEdge:#d4a72c;--fault:#3a1715;--faultEdge:#f2918b;--link:#6d97d5}
header img{padding:.25rem;border-radius:.375rem;background:#fff}}
`

interface PageParts {
  readonly title: string
  readonly header: Markup
  readonly content: Markup
  readonly footer?: Markup | undefined
  readonly head?: Markup | undefined
  /** The only script that the browser runs. */
  readonly script?: string
  readonly isWide?: boolean
  readonly formAction?: string
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const STYLE_HASH = hashOf(STYLE)

export function writePage(parts: PageParts): Page {
  const { title, header, content, footer, head, script, isWide = false, formAction = "'none'" } = parts
  return {
    html: html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>${shown(title, 200)}</title>
${head}<style>${new Markup(STYLE)}</style>
</head>
<body${isWide ? html` class="wide"` : undefined}>
<header>${header}</header>
<main>
${content}
</main>
${footer}${script === undefined ? undefined : html`<script>${new Markup(script)}</script>`}
</body>
</html>
`.text,
    policy: [
      "default-src 'none'",
      `style-src ${STYLE_HASH}`,
      ...(script === undefined ? [] : [`script-src ${hashOf(script)}`]),
      'img-src data:',
      "base-uri 'none'",
      `form-action ${formAction}`,
      "frame-ancestors 'none'",
    ].join('; '),
  }
}

/** Sends a page. Requires `Referrer-Policy: same-origin`: otherwise browsers send forms with `Origin: null`. */
export function sendPage(ctx: Pick<HostContext, 'status' | 'type' | 'body' | 'set'>, page: Page, status = 200): void {
  ctx.status = status
  ctx.type = 'html'
  ctx.set({
    'Content-Security-Policy': page.policy,
    'X-Frame-Options': 'DENY',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  })
  ctx.body = page.html
}
