// Issuer keys and token signatures, for plugins that verify JWTs.
export {
  announceIssuers,
  createIssuerCheck,
  createIssuerKeys,
  type IssuerKeys,
} from './issuer-keys.ts'
export {
  type Algorithm,
  ASYMMETRIC,
  candidates,
  createFixedKeys,
  createSecret,
  type JsonWebToken,
  type KeySource,
  loadJsonWebToken,
  readKey,
  readToken,
  SYMMETRIC,
  signer,
  type VerificationKey,
} from './verification-key.ts'
