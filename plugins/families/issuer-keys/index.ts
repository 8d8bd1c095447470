// Issuer keys and token signatures, for plugins that verify JWTs.
export { announceIssuers, createIssuerCheck } from './accepted-issuers.ts'
export { createIssuerKeys, type IssuerKeys, type IssuerKeysSettings, metadataUrls } from './issuer-keys.ts'
export { type JsonWebToken, loadJsonWebToken, type ReadToken, readToken, signer } from './token.ts'
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
