// URIs of files and folders. Each has one spelling and is compared literally; `..` does not match.

export const SKILL_FILE = 'SKILL.md'
const SCHEME = 'skill://'

/** Characters that encodeURIComponent encodes but RFC 3986 allows in a path segment. */
const PLAIN_IN_PATH = /%(?:24|26|2B|2C|3A|3B|3D|40)/g
/** The same for the first segment, the authority. */
const PLAIN_IN_NAME = /%(?:24|26|2B|2C|3B|3D)/g

/** The URI of a file or folder, by its names from the skills folder on. */
export function uriOf(names: readonly string[]): string {
  const segments = names.map((name, at) =>
    encodeURIComponent(name.normalize('NFC')).replace(at === 0 ? PLAIN_IN_NAME : PLAIN_IN_PATH, decodeURIComponent),
  )
  return `${SCHEME}${segments.join('/')}`
}

/** The parent folder; undefined if it has no URI. */
export function folderOf(uri: string): string | undefined {
  const at = uri.lastIndexOf('/')
  return at < SCHEME.length ? undefined : uri.slice(0, at)
}

export const nameOf = (uri: string): string => decodeURIComponent(uri.slice(uri.lastIndexOf('/') + 1))
