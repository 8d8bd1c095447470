// Media types of files in skills, by the extension of their name. Other files are plain text or bytes.

const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ['md', 'text/markdown'],
  ['txt', 'text/plain'],
  ['html', 'text/html'],
  ['css', 'text/css'],
  ['csv', 'text/csv'],
  ['xml', 'application/xml'],
  ['svg', 'image/svg+xml'],
  ['json', 'application/json'],
  ['jsonl', 'application/jsonl'],
  ['yaml', 'application/yaml'],
  ['yml', 'application/yaml'],
  ['toml', 'application/toml'],
  ['js', 'text/javascript'],
  ['mjs', 'text/javascript'],
  ['ts', 'text/x-typescript'],
  ['py', 'text/x-python'],
  ['sh', 'application/x-sh'],
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['pdf', 'application/pdf'],
  ['zip', 'application/zip'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
])

const TEXT = /^text\/|[/+](?:json|xml|yaml|jsonl|toml|x-sh)$/

/** The media type of a file, and whether it is sent as text. `isText`: its bytes are UTF-8. */
export function mediaTypeOf(name: string, isText: boolean): { readonly mimeType: string; readonly asText: boolean } {
  const [, extension = ''] = /\.([^.]+)$/.exec(name) ?? []
  const known = BY_EXTENSION.get(extension.toLowerCase())
  if (known === undefined) return { mimeType: isText ? 'text/plain' : 'application/octet-stream', asText: isText }
  return { mimeType: known, asText: isText && TEXT.test(known) }
}
