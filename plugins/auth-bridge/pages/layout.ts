// What all pages have in common: the document around them, its style, and the policy that it is sent with.
import { createHash } from 'node:crypto'
import { html, Markup, safeHref, shown } from './html.ts'
import { STYLE } from './style.ts'
import type { Page, PageSettings } from './views.ts'

export interface Body {
  /** Of the window; the service's name follows. */
  readonly title: string
  readonly content: Markup
  /** Further parts of the head. */
  readonly head?: Markup
  /** Sources of `form-action`; default: none. */
  readonly formAction?: string
}

export type Layout = (body: Body) => Page

/** An address to go to, or a sentence. */
function writeSupport(support: string): Markup {
  const isAddress = /^(?:https|mailto):/i.test(support)
  const href = isAddress ? safeHref(support) : undefined
  if (href === undefined) return html`<p>${shown(support, 200)}</p>`
  const label = shown(support.replace(/^(?:https:\/\/|mailto:)/i, ''), 200)
  return html`<p>Questions? <a href="${href}">${label}</a></p>`
}

/** Everything but the body is made once. */
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
