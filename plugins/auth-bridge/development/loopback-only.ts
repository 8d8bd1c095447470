// The development provider signs in anyone as any user, so it runs on this machine only.
import { isLoopback } from '../../../core/auth.ts'
import { type HostContext, HostError, type PluginHost, StartError } from '../../../core/index.ts'

/** Throws a StartError if other machines can reach this host, or in production. */
export function refuseExposedHost({ at, http, log }: PluginHost): void {
  const refuse = (why: string) => new StartError(why, { at })
  if (process.env['NODE_ENV'] === 'production')
    throw refuse('it signs in anyone without a password; it does not run in production')
  if (!isLoopback(http.host)) throw refuse(`http.host is ${http.host}; it runs on a loopback address only`)
  const { publicUrl } = http
  if (publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname))
    throw refuse(`http.publicUrl is ${publicUrl}; it runs under a loopback address only`)
  log.warn({ at }, 'Development authorization server enabled: anyone who can reach this host can sign in.')
}

/** Throws for a request from another machine, through a tunnel, or under a name that is not a loopback name (DNS rebinding). */
export function refuseForeignRequest({ req }: HostContext): void {
  // The server may belong to an embedding application (`Host.callback`), which may listen on all addresses.
  const from = req.socket.remoteAddress?.replace(/^::ffff:/i, '') ?? ''
  if (!isLoopback(from)) throw new HostError('hostNotAllowed', { detail: `the request comes from ${from}` })
  const { host: named, ':authority': authority = named, 'x-forwarded-host': forwarded } = req.headers
  for (const host of [named ?? authority ?? '', authority ?? '', forwarded ?? 'localhost']) {
    const address = `http://${host}`
    if (!URL.canParse(address) || !isLoopback(new URL(address).hostname))
      throw new HostError('hostNotAllowed', { detail: String(host) })
  }
}
