// Credentials of APIs that a plugin calls: secrets of the config, and OAuth tokens of the host or of the caller.
export { SCHEME_AUTH, SECRET, type SecretSource, UPSTREAM_AUTH, type UpstreamAuth } from './schema.ts'
export { readSecret } from './secret.ts'
export {
  type Authorization,
  type AuthorizedRequest,
  createTokenSource,
  type TokenSource,
} from './tokens.ts'
