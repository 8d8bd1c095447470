// Credentials of APIs that a plugin calls: secrets of the config, and OAuth tokens of the host or of the caller.
export { type GrantSource, grantSources, type OperatorGrant } from './grants.ts'
export { isLoginRound, withLogin } from './login-round.ts'
export { createLogins, type Logins } from './logins.ts'
export {
  asText,
  createRecords,
  createSealer,
  digest,
  formToken,
  grantedKey,
  isFormToken,
  pendingKey,
  type RecordKey,
  type Records,
  redirectTo,
} from './records.ts'
export {
  isPerCaller,
  readSecret,
  SCHEME_AUTH,
  SECRET,
  type SecretSource,
  UPSTREAM_AUTH,
  type UpstreamAuth,
} from './schema.ts'
export {
  type Authorization,
  type AuthorizedRequest,
  createTokenSource,
  type Refusal,
  readStepUp,
  type TokenSource,
} from './tokens.ts'
