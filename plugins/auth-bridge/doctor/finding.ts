// How the checks of the bridge say what they found.
import type { PluginFinding } from '../../../core/auth.ts'
import { UpstreamError } from '../upstream/upstream.ts'

export type Findings = PluginFinding[]

export const ok = (check: string, text: string): PluginFinding => ({ check, level: 'ok', text })

export const note = (check: string, text: string, fix?: string): PluginFinding => ({
  check,
  level: 'note',
  text,
  ...(fix !== undefined && { fix }),
})

export const wrong = (check: string, text: string, fix?: string): PluginFinding => ({
  check,
  level: 'wrong',
  text,
  ...(fix !== undefined && { fix }),
})

/** A fix that is about the redirect URI says which one. */
export const withRedirectUri = (fix: string, redirectUri: string): string =>
  fix.includes(redirectUri) || !/redirect|callback/i.test(fix) ? fix : `${fix} Redirect URI: ${redirectUri}`

/** What went wrong on the way to the provider; rethrows what is no failure of that kind. */
export function failed(check: string, error: unknown): PluginFinding {
  if (!(error instanceof UpstreamError)) throw error
  const away =
    error.fault === 'unavailable' ? 'let this machine reach the provider: name server, proxy, firewall' : undefined
  return wrong(check, error.message, error.fix ?? away)
}
