// What the plugins that verify signed tokens of other issuers share: where an issuer's keys are, its key set, and whose
// signature a token has. No plugin itself.
export { metadataUrls } from './discover-keys.ts'
export { createIssuerKeys, type IssuerKeys, type IssuerKeysSettings } from './issuer-keys.ts'
export { type ReadToken, readToken } from './read-token.ts'
export { type JsonWebToken, loadJsonWebToken, signer } from './signature.ts'
export {
  type Algorithm,
  ASYMMETRIC,
  candidates,
  createFixedKeys,
  createSecret,
  type KeySource,
  readKey,
  SYMMETRIC,
  type VerificationKey,
} from './verification-key.ts'
