// Why `fetch` got no answer: an HTTP proxy on the way, which is no fault of the server; a certificate; or the server; and what to do.

/** Has the network's code, such as ECONNREFUSED. */
export class ProxyFailure extends Error {
  readonly code: string

  constructor(what: string, code: string, cause?: unknown) {
    super(what, { cause })
    this.code = code
  }
}

/** The first one among the causes. */
function proxyFailureIn(thrown: unknown): ProxyFailure | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) {
    if (error instanceof ProxyFailure) return error
  }
  return undefined
}

const UNTRUSTED =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/

/** What to do about a certificate that was not taken, by Node's code for it among the causes; undefined for any other failure. */
export function certificateFix(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) {
    const code = String((error as { code?: unknown }).code)
    if (UNTRUSTED.test(code))
      return 'its certificate is not trusted here: name the file of its authority in the environment, NODE_EXTRA_CA_CERTS=ca.pem'
    if (code === 'CERT_HAS_EXPIRED') return 'its certificate has ended: who runs the server has to renew it'
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
      return 'its certificate is for other names: use one of them in the address'
  }
  return undefined
}

/** Why `fetch` got no answer, as the end of a sentence that begins with the address; and what to do. */
export function tellUnreached(thrown: unknown, code?: string): { readonly what: string; readonly fix: string } {
  const proxy = proxyFailureIn(thrown)
  if (proxy) return { what: `was not asked: ${proxy.message}`, fix: 'check that proxy' }
  const why = code === undefined ? '' : ` (${code})`
  return {
    what: `cannot be reached${why}`,
    fix: certificateFix(thrown) ?? 'check the address and that the server runs',
  }
}
