// The default token cache: this process's memory, for as long as it lives.
import type { TokenCache, TokenContainer } from './types.ts'

export function createMemoryTokenCache(): TokenCache {
  const containers = new Map<string, TokenContainer>()
  return {
    getTokens: ({ key }) => containers.get(key),
    storeTokens: (tokens, { key }) => void containers.set(key, tokens),
    deleteTokens: ({ key }) => void containers.delete(key),
  }
}
