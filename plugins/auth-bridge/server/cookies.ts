// The cookies of oidc-provider: how they are named, and what holds for them.

/**
 * No page of another host of the domain can set one that begins with `__Host-`; what the others would let in there is stopped
 * by the cookie of the browser.
 */
export const cookieNames = (issuer: string) =>
  issuer.startsWith('https:')
    ? { session: '__Host-mcp_session', interaction: '__Secure-mcp_login', resume: '__Secure-mcp_resume' }
    : { session: 'mcp_session', interaction: 'mcp_login', resume: 'mcp_resume' }

/** Of a sign-in under way. */
export const shortCookie = (issuer: string) => ({
  ...{ signed: true, httpOnly: true, overwrite: true, sameSite: 'lax' as const },
  secure: issuer.startsWith('https:'),
})

/** Of the session of a browser. */
export const longCookie = (issuer: string) => ({ ...shortCookie(issuer), path: '/' })
