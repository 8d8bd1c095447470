// The media types of what skills are usually made of, by the ending of a file's name; what is none of these is told by its
// bytes.

const BY_ENDING: ReadonlyMap<string, string> = new Map([
  ['md', 'text/markdown'],
  ['markdown', 'text/markdown'],
  ['txt', 'text/plain'],
  ['html', 'text/html'],
  ['htm', 'text/html'],
  ['css', 'text/css'],
  ['csv', 'text/csv'],
  ['tsv', 'text/tab-separated-values'],
  ['xml', 'application/xml'],
  ['svg', 'image/svg+xml'],
  ['json', 'application/json'],
  ['jsonl', 'application/jsonl'],
  ['yaml', 'application/yaml'],
  ['yml', 'application/yaml'],
  ['toml', 'application/toml'],
  ['js', 'text/javascript'],
  ['mjs', 'text/javascript'],
  ['cjs', 'text/javascript'],
  ['ts', 'text/x-typescript'],
  ['py', 'text/x-python'],
  ['sh', 'application/x-sh'],
  ['sql', 'application/sql'],
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['ico', 'image/x-icon'],
  ['pdf', 'application/pdf'],
  ['zip', 'application/zip'],
  ['gz', 'application/gzip'],
  ['tar', 'application/x-tar'],
  ['wasm', 'application/wasm'],
  ['woff', 'font/woff'],
  ['woff2', 'font/woff2'],
  ['ttf', 'font/ttf'],
  ['otf', 'font/otf'],
  ['mp3', 'audio/mpeg'],
  ['wav', 'audio/wav'],
  ['mp4', 'video/mp4'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
])

const TEXT = /^text\/|[/+](?:json|xml|yaml|jsonl|toml|x-sh|sql)$/

/** How a file is served. `isText`: its bytes are UTF-8, and so can be sent as the text that they are. */
export function mediaTypeOf(name: string, isText: boolean): { readonly mimeType: string; readonly asText: boolean } {
  const [, ending = ''] = /\.([^.]+)$/.exec(name) ?? []
  const known = BY_ENDING.get(ending.toLowerCase())
  if (known === undefined) return { mimeType: isText ? 'text/plain' : 'application/octet-stream', asText: isText }
  return { mimeType: known, asText: isText && TEXT.test(known) }
}
