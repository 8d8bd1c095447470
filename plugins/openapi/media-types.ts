// Chooses one of the media types that an operation declares.
import type { BodyKind } from './operation.ts'

/** True for `application/json` and types such as `application/problem+json`, also with parameters. */
export const isJsonType = (type: string): boolean => /[/+]json(?:[\s;,]|$)/i.test(type)

const MEDIA_KINDS: ReadonlyArray<readonly [BodyKind, (type: string) => boolean]> = [
  ['json', type => type === 'application/json'],
  ['json', isJsonType],
  ['form', type => type === 'application/x-www-form-urlencoded'],
  ['multipart', type => type === 'multipart/form-data'],
  ['text', type => type.startsWith('text/') && !type.includes('*')],
  ['binary', type => !type.includes('*')],
  ['json', () => true],
]

/** Returns the type without parameters, in lower case. */
export const mediaTypeEssence = (type: string): string => (type.split(';', 1)[0] ?? '').trim().toLowerCase()

export interface ChosenType {
  /** The key of `content`. */
  readonly key: string
  readonly mediaType: string
  readonly kind: BodyKind
}

/** Returns the type that is easiest to use: JSON, forms, multipart, text, then bytes. `*` types count as JSON. */
export function chooseMediaType(keys: readonly string[]): ChosenType | undefined {
  for (const [kind, fits] of MEDIA_KINDS) {
    const key = keys.find(one => fits(mediaTypeEssence(one)))
    if (key === undefined) continue
    const mediaType = mediaTypeEssence(key)
    return { key, kind, mediaType: mediaType.includes('*') ? 'application/json' : mediaType }
  }
  return undefined
}

export const findJsonType = (keys: readonly string[]): string | undefined => keys.find(isJsonType)
