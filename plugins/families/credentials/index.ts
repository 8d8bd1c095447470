// Credentials of APIs that a plugin calls: secrets of the config, and OAuth tokens of the host or of the caller.
export { type GrantSource, grantSources, type OperatorGrant } from './grants.ts'
export { isLoginRound, withLogin } from './login-round.ts'
export { createLogins, type Logins } from './logins.ts'
export {
  createRecords,
  createSealer,
  digest,
  grantedAt,
  type Place,
  pendingAt,
  type Records,
} from './records.ts'
export { isPerCaller, SCHEME_AUTH, SECRET, type SecretSource, UPSTREAM_AUTH, type UpstreamAuth } from './schema.ts'
export { readSecret } from './secret.ts'
export {
  type Authorization,
  type AuthorizedRequest,
  createTokenSource,
  type Refusal,
  stepUpOf,
  type TokenSource,
} from './tokens.ts'
