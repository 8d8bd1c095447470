// HTML templates with escaped values, safe display of untrusted text, and the page layout with its Content-Security-Policy.

import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { isLoopback } from '../../../core/auth.ts'
import { StartError } from '../../../core/plugin.ts'
import { isAppScheme } from '../clients/redirects.ts'
import type { FilledAuthBridge } from '../options.ts'

export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = string | Markup | readonly Part[] | undefined

const escapeHtml = (text: string) => text.replace(/[&<>"'`]/g, character => `&#${character.charCodeAt(0)};`)

function write(part: Part): string {
  if (part === undefined) return ''
  if (typeof part === 'string') return escapeHtml(part)
  return part instanceof Markup ? part.text : part.map(write).join('')
}

/** Attribute values need double quotes. */
export const html = (strings: TemplateStringsArray, ...parts: readonly Part[]): Markup =>
  new Markup(strings.map((string, index) => string + write(parts[index])).join(''))

const MAX_READ = 8_000
const SPACES = /[\s\p{Zs}\p{Zl}\p{Zp}\u2800]+/gu
/** Invisible characters, or characters that change their neighbours: control, format, private use, fillers. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu
/** More than three combining marks overlap other lines. */
const PILED = /(\p{M}{3})\p{M}+/gu

const clean = (text: string) =>
  text.slice(0, MAX_READ).replace(SPACES, ' ').replace(UNSEEN, '').replace(PILED, '$1').replace(/ +/g, ' ').trim()

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

/** Undefined unless http, https, mailto or a local path. */
export function safeHref(href: string): string | undefined {
  if (/^\/(?![/\\])[\x21-\x7e]*$/.test(href)) return href
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url.href : undefined
}

export interface ShownClient {
  readonly name: string | undefined
  readonly id: string
  /** Host of the metadata document; undefined for a registered client with an unverified name. */
  readonly documentHost: string | undefined
  readonly isKnown: boolean
  readonly homepage?: string
}

export interface ShownPerson {
  readonly name?: string
  readonly email?: string
  readonly subject: string
}

const MAX_ITEMS = 50
const MAX_URL = 300

export interface Destination {
  readonly kind: 'web' | 'computer' | 'app' | 'unknown'
  readonly place: string
}

export function readDestination(uri: string): Destination {
  const unknown = { kind: 'unknown', place: shown(uri, MAX_URL) } as const
  if (!URL.canParse(uri)) return unknown
  const { protocol, hostname, host } = new URL(uri)
  if (!isAppScheme(protocol)) return unknown
  if (protocol !== 'http:' && protocol !== 'https:') {
    const isHierarchical = uri.trim().slice(protocol.length).startsWith('//')
    return { kind: 'app', place: shown(isHierarchical ? `${protocol}//` : protocol) }
  }
  // A URL host can contain `;` or `*`, a machine name cannot.
  if (!hostname.startsWith('[') && !/^[a-z0-9._-]+$/.test(hostname)) return unknown
  if (isLoopback(hostname)) return { kind: 'computer', place: 'This computer' }
  return { kind: 'web', place: shownHost(host) }
}

export const shownUrl = (url: string): string => shown(url, MAX_URL)

export function writePerson({ name, email, subject }: ShownPerson): Markup {
  const [known = '', ...more] = [name, email].flatMap(text => (text === undefined ? [] : shown(text) || []))
  if (known === '') return html`<strong><bdi>${shown(subject)}</bdi></strong>`
  return html`<strong><bdi>${known}</bdi></strong>${more.map(text => html` (<bdi>${text}</bdi>)`)}`
}

export const nameOf = ({ name = '' }: ShownClient): string => shown(name)

export const isUnverified = ({ isKnown, documentHost }: ShownClient): boolean => !isKnown && documentHost === undefined

export function homepageOf({ homepage, isKnown, documentHost }: ShownClient): Markup | undefined {
  const href = homepage === undefined ? undefined : safeHref(homepage)
  if (href === undefined || !/^https?:/.test(href)) return undefined
  const { host, username, password } = new URL(href)
  if (username !== '' || password !== '' || !(isKnown || host === documentHost)) return undefined
  return html`<a href="${href}" rel="noreferrer">${shownHost(host)}</a>`
}

export function writeItems<Item>(items: readonly Item[], write: (item: Item) => Markup): Markup {
  const rest = items.length - MAX_ITEMS
  const more = rest > 0 ? html`<li><strong>And ${String(rest)} more.</strong></li>` : undefined
  return html`<ul class="list">${items.slice(0, MAX_ITEMS).map(item => html`<li>${write(item)}</li>`)}${more}</ul>`
}

export interface Page {
  readonly html: string
  readonly policy: string
}

export interface Logo {
  readonly type: string
  readonly data: Buffer
}

export interface PageSettings {
  readonly page: FilledAuthBridge['page'] & { readonly name: string }
  readonly label: string
  readonly logo?: Logo | undefined
  readonly users?: FilledAuthBridge['provider']['users'] | undefined
  /** Base path, such as `/auth`. The account page is below it. */
  readonly base: string
}

const MAX_BYTES = 256 * 1024

const TYPES: Readonly<Record<string, string>> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
}

/** Throws a StartError for a missing file, more than 256 kB, or another type. An embedded SVG cannot run scripts. */
export function readLogo(file: string, directory: string): Logo {
  const refuse = (why: string, cause?: unknown) =>
    new StartError('MH2105', `the logo ${JSON.stringify(file)} ${why}`, { exitCode: 2, cause })
  const type = TYPES[extname(file).toLowerCase()]
  if (type === undefined) throw refuse('is not a .svg, .png, .jpg, .jpeg or .webp file')
  const path = resolve(directory, file)
  let data: Buffer
  try {
    const about = statSync(path)
    if (!about.isFile()) throw refuse('is no file; name the picture itself')
    const { size } = about
    if (size > MAX_BYTES) throw refuse(`has ${size} bytes; at most ${MAX_BYTES} (256 kB) are allowed: make it smaller`)
    data = readFileSync(path)
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    throw refuse(`cannot be read (${code}); it is looked for in the folder of the config`, cause)
  }
  return { type, data }
}

const STYLE = `
:root{--page:#f3f4f6;--card:#fff;--text:#1b1f24;--muted:#57606a;--line:#d5dae0;--edge:#6a737d;--box:#f3f4f6}
:root{--warn:#fff4d6;--warnEdge:#9a6700;--fault:#ffebe9;--faultEdge:#b3261e;--brand:#1f5fbf;--onBrand:#fff;--link:#1f5fbf}
*,*::before,*::after{box-sizing:border-box}
html{color-scheme:light dark;font:100%/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;-webkit-text-size-adjust:100%}
body{margin:0;min-height:100vh;padding:clamp(1rem,7vh,4.5rem) 1rem 2rem;background:var(--page);color:var(--text)}
header,main,footer{max-width:30rem;margin:0 auto;overflow-wrap:anywhere}
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
.box .small{display:block;font-weight:400}
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
.choice{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1rem}
button,.button{flex:1 1 8rem;display:block;width:100%;min-height:2.875rem;padding:.625rem 1rem;border:2px solid var(--edge);border-radius:.5rem;background:var(--card);color:var(--text);font:inherit;font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
.choice button{width:auto}
h3 .box{display:block;font-size:1rem}
button:hover,.button:hover{text-decoration:underline}
.main{background:var(--brand);border-color:var(--link);color:var(--onBrand)}
:focus-visible{outline:3px solid var(--link);outline-offset:3px;border-radius:.25rem}
button:focus-visible,.button:focus-visible{border-radius:.5rem}
.grants>li{padding:1rem 0}
.grants dl{margin:.5rem 0 .75rem;font-size:.9375rem}
.hidden{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (max-width:26rem){dl{display:block}dd{margin-bottom:.375rem}}
@media (prefers-color-scheme:dark){
:root{--page:#121417;--card:#1c2024;--text:#e9ebee;--muted:#a9b1ba;--line:#363c43;--edge:#8d96a0;--box:#121417}
:root{--warn:#33290b;--warnEdge:#d4a72c;--fault:#3a1715;--faultEdge:#f2918b;--link:#6d97d5}
header img{padding:.25rem;border-radius:.375rem;background:#fff}}
`

interface Body {
  readonly title: string
  readonly content: Markup
  readonly head?: Markup
  readonly formAction?: string
}

export type Layout = (body: Body) => Page

function writeSupport(support: string): Markup {
  const isAddress = /^(?:https|mailto):/i.test(support)
  const href = isAddress ? safeHref(support) : undefined
  if (href === undefined) return html`<p>${shown(support, 200)}</p>`
  const label = shown(support.replace(/^(?:https:\/\/|mailto:)/i, ''), 200)
  return html`<p>Questions? <a href="${href}">${label}</a></p>`
}

export function createLayout({ page, logo }: PageSettings): Layout {
  const name = shown(page.name)
  const hash = createHash('sha256').update(STYLE).digest('base64')
  const source = logo && `data:${logo.type};base64,${logo.data.toString('base64')}`
  const image = source === undefined ? undefined : html`<img src="${source}" alt="">`
  const support = page.support === undefined ? undefined : html`<footer>${writeSupport(page.support)}</footer>`
  return ({ title, content, head, formAction = "'none'" }) => ({
    html: html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>${shown(title, 120)} – ${name}</title>
${head}<style>${new Markup(STYLE)}</style>
</head>
<body>
<header>${image}<p>${name}</p></header>
<main>
${content}
</main>
${support}
</body>
</html>
`.text,
    policy: [
      "default-src 'none'",
      `style-src 'sha256-${hash}'`,
      'img-src data:',
      "base-uri 'none'",
      `form-action ${formAction}`,
      "frame-ancestors 'none'",
    ].join('; '),
  })
}
