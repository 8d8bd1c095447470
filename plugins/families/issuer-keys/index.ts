// What the plugins that verify signed tokens of other issuers share: where an issuer's keys are, its key set, and whose
// signature a token has. No plugin itself.
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
