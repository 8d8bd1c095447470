// Where clients find what, under the bridge's path, and how long a sign-in may take.

export const ROUTES = {
  authorization: '/authorize',
  jwks: '/jwks',
  registration: '/register',
  revocation: '/revoke',
  token: '/token',
} as const

/** Seconds that a sign-in may take. */
export const SIGN_IN_TTL = 900

/** Seconds after which to come again, where what this server needs does not answer. */
export const RETRY_AFTER = '5'
