// `mcp-host/apps`: defines the apps of tools.
import type { ResourceDefinition } from '../../core/index.ts'

/** Additional origins for an app's page, such as `https://api.acme.example`. Default: none. */
interface AppCsp {
  /** `connect-src`: `fetch`, `WebSocket`. */
  connectDomains?: string[]
  /** Images, scripts, styles, fonts and media. `https://*.acme.example`: all subdomains. */
  resourceDomains?: string[]
  /** `frame-src`. */
  frameDomains?: string[]
  /** `base-uri`. */
  baseUriDomains?: string[]
}

/** Browser features that the page requests, each with `{}`. Clients can reject them. */
interface AppPermissions {
  camera?: Readonly<Record<never, never>>
  microphone?: Readonly<Record<never, never>>
  geolocation?: Readonly<Record<never, never>>
  clipboardWrite?: Readonly<Record<never, never>>
}

/** An app, as `defineApp` returns it (MCP Apps, SEP-1865), served as `ui://<name>/app.html`. */
export interface AppDefinition {
  /** 1 to 64 lower-case letters, digits and `. _ -`; unique on a route. */
  name: string
  title?: string
  description?: string
  icons?: NonNullable<ResourceDefinition['icons']>
  /** HTML text that begins with `<`, or a file relative to the config. Alternative: `module`. */
  html?: string
  /** A JavaScript or TypeScript file, bundled into one page. */
  module?: string
  csp?: AppCsp
  permissions?: AppPermissions
  /** The page's origin, in the client's format. Default: chosen by the client. */
  domain?: string
  /** Default: chosen by the client. */
  prefersBorder?: boolean
}

/** Defines an app page for tool results. Set `html` or `module`. Requires the plugin `apps`. */
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
