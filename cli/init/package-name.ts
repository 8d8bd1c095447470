// From what a person calls a project, or its folder, to names that npm, JavaScript and MCP take.

const MAX_LENGTH = 214
const PACKAGE_NAME = /^(?:@[a-z0-9-][a-z0-9-._]*\/)?[a-z0-9][a-z0-9-._]*$/

/** npm installs no package into one of the same name. */
const DEPENDENCIES: ReadonlySet<string> = new Set(['mcp-host', 'tsx', 'typescript', 'node_modules'])

const isPackageName = (text: string): boolean =>
  text.length <= MAX_LENGTH && PACKAGE_NAME.test(text) && !DEPENDENCIES.has(text)

/** The text where npm takes it as a name, else one that it takes: `My Server!` becomes `my-server`. */
export function toPackageName(text: string, otherwise: string): string {
  if (isPackageName(text)) return text
  const made = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9._]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, MAX_LENGTH)
  if (isPackageName(made)) return made
  return made === '' ? otherwise : `${made}-server`
}

/** The last part of a package's name: without its scope. */
export const withoutScope = (name: string): string => name.replace(/^@[^/]*\//, '')

/** No names of variables in a module. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    'arguments await break case catch class const continue debugger default delete do else enum eval export extends false ' +
    'finally for function if implements import in instanceof interface let new null package private protected public ' +
    'return static super switch this throw true try typeof undefined var void while with yield'
  ).split(' '),
)

/** `get_weather` and `get-weather` become `getWeather`; what is no name of a variable gets `kind` behind it or in front. */
export function toIdentifier(name: string, kind: string): string {
  const [first = kind, ...rest] = name.split(/[^A-Za-z0-9]+/).filter(word => word !== '')
  const words = [`${first.charAt(0).toLowerCase()}${first.slice(1)}`, ...rest.map(capitalize)]
  const made = words.join('')
  if (RESERVED.has(made)) return `${made}${capitalize(kind)}`
  return /^[0-9]/.test(made) ? `${kind}${made}` : made
}

export const capitalize = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`
