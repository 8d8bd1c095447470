// The one spelling that each file and folder of a skill has as a URI: what is looked up is compared to it letter by letter, so
// `..`, empty segments and other encodings of the same name lead nowhere.

export const SKILL_FILE = 'SKILL.md'
const SCHEME = 'skill://'

/** What RFC 3986 lets stand in a segment of a path, and encodeURIComponent would encode. */
const PLAIN_IN_PATH = /%(?:24|26|2B|2C|3A|3B|3D|40)/g
/** The same of the first segment, which is an authority. */
const PLAIN_IN_NAME = /%(?:24|26|2B|2C|3B|3D)/g

/** The URI of what is at these names below the folder of skills. */
export function uriOf(names: readonly string[]): string {
  const segments = names.map((name, at) =>
    encodeURIComponent(name.normalize('NFC')).replace(at === 0 ? PLAIN_IN_NAME : PLAIN_IN_PATH, decodeURIComponent),
  )
  return `${SCHEME}${segments.join('/')}`
}

/** The folder that a file or folder is in; undefined: it is in none that has a URI. */
export function folderOf(uri: string): string | undefined {
  const at = uri.lastIndexOf('/')
  return at < SCHEME.length ? undefined : uri.slice(0, at)
}

/** The last name of a URI, decoded. */
export const nameOf = (uri: string): string => decodeURIComponent(uri.slice(uri.lastIndexOf('/') + 1))
