// What an author writes of an app: a page that shows the results of tools, in the client, to people (MCP Apps, SEP-1865).
// Nothing is read or built here; that is the business of the plugin which serves it.
import type { Icon } from './protocol.ts'

/** Other origins than the app's own that its page may use: absent or empty, none. Each is such as `https://api.acme.example`. */
export interface AppCsp {
  /** For `fetch`, `WebSocket` and the like (`connect-src`). */
  connectDomains?: string[]
  /** For images, scripts, styles, fonts and media; `https://*.acme.example` for all subdomains. */
  resourceDomains?: string[]
  /** For frames in the page (`frame-src`). */
  frameDomains?: string[]
  /** For the page's `<base>` (`base-uri`). */
  baseUriDomains?: string[]
}

/** What the page would like to use of the browser, each with `{}`. A client may refuse it. */
export interface AppPermissions {
  camera?: Readonly<Record<never, never>>
  microphone?: Readonly<Record<never, never>>
  geolocation?: Readonly<Record<never, never>>
  clipboardWrite?: Readonly<Record<never, never>>
}

/** An app, as `defineApp` makes it and the `app` of a tool takes it. Its page is the resource `ui://<name>/app.html`. */
export interface AppDefinition {
  /** Lower-case letters, digits and `. _ -`, at most 64; unique on a route. */
  name: string
  title?: string
  description?: string
  icons?: Icon[]
  /** The whole page: a text that begins with `<`, or a file. A path is relative to the config's folder. Or give `module`. */
  html?: string
  /** A script, TypeScript too, that is bundled with all that it imports, CSS too, into one page. As `html`: a path, or a URL. */
  module?: string
  /** Other origins that the page may use. Default: none at all. */
  csp?: AppCsp
  permissions?: AppPermissions
  /** An origin of its own for the page, in the client's own format. Default: what the client gives it. */
  domain?: string
  /** Whether the client draws a border and a background. Default: the client decides. */
  prefersBorder?: boolean
}

/**
 * An app: a page that clients show for the results of the tools that name it as their `app`. Give `html` or `module`; a
 * file of your module's own folder is `new URL('./chart.ts', import.meta.url)`. The plugin `apps` serves it; mistakes in it
 * stop the start.
 */
export function defineApp(
  app: Omit<AppDefinition, 'html' | 'module'> & { html?: string | URL; module?: string | URL },
): AppDefinition {
  const { html, module, ...rest } = app
  return {
    ...rest,
    ...(html !== undefined && { html: html instanceof URL ? html.href : html }),
    ...(module !== undefined && { module: module instanceof URL ? module.href : module }),
  }
}
