// An API: its documents, version, servers and security schemes, and the operations that they declare.
import { isObject } from '../../core/plugin.ts'
import type { Documents } from './document/load.ts'
import { below, DocumentError, type Place, rootPlace, toPointer } from './document/place.ts'
import { createReferences, type Found, type References } from './document/references.ts'
import type { HttpMethod, SecurityRequirement, SecurityScheme, SecuritySchemes } from './operation.ts'
import { METHODS } from './options.ts'
import { createDefinitions } from './schema/definitions.ts'

export type Api = ReturnType<typeof createApi>

/** True if a server or a token URL can receive credentials. */
export type TrustsUrl = (url: URL) => boolean

export interface Candidate {
  /** The operationId, or `GET /pets/{id}`. */
  readonly id: string
  readonly operationId?: string
  readonly method: HttpMethod
  readonly path: string
  readonly tags: readonly string[]
  readonly deprecated: boolean
  readonly operation: Readonly<Record<string, unknown>>
  readonly place: Place
  readonly pathItem: Found
}

const fail = (place: Place, text: string): never => {
  throw new DocumentError(place, text)
}

export function readObject({ value, place }: Found, what: string): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : fail(place, `${what} must be an object`)
}

export const childOf = ({ value, place }: Found, key: string): Found => ({
  value: typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined,
  place: below(place, key),
})

/** Throws a DocumentError for a document of another version or kind. */
export function createApi(documents: Documents, trusts: TrustsUrl = () => true) {
  const place = rootPlace(documents.main)
  const root = readObject({ value: documents.main.root, place }, 'an OpenAPI document')
  const version = readVersion(root, place)
  const references = createReferences(documents)
  const notes = new Map<string, { readonly place: Place; readonly text: string }>()
  const note = (at: Place, text: string): void =>
    void notes.set(`${at.file.name}${toPointer(at)} ${text}`, { place: at, text })
  const settings = { references, version, note }
  return {
    documents,
    references,
    root,
    place,
    version,
    trusts,
    /** Ignored or replaced invalid parts of the document, with their locations. */
    notes,
    note,
    securitySchemes: readSecuritySchemes({ value: root, place }, references),
    request: createDefinitions({ ...settings, direction: 'request' }),
    response: createDefinitions({ ...settings, direction: 'response' }),
  }
}

function readVersion(root: Readonly<Record<string, unknown>>, place: Place): '3.0' | '3.1' {
  const { openapi, swagger } = root
  if (swagger !== undefined)
    return fail(below(place, 'swagger'), `OpenAPI ${swagger} is not supported; convert the document to 3.0 or 3.1`)
  if (openapi === undefined) return fail(place, 'is not an OpenAPI document: `openapi` is missing')
  const found = /^3\.[01](?=\.|$)/.exec(`${openapi}`)?.[0]
  if (found === '3.0' || found === '3.1') return found
  return fail(below(place, 'openapi'), `OpenAPI ${openapi} is not supported; use 3.0 or 3.1`)
}

function readSecuritySchemes(root: Found, references: References): SecuritySchemes {
  const schemes = childOf(childOf(root, 'components'), 'securitySchemes')
  if (schemes.value === undefined) return new Map()
  return new Map(
    Object.keys(readObject(schemes, '`securitySchemes`')).map(name => [
      name,
      readScheme(references.follow(childOf(schemes, name))),
    ]),
  )
}

function readScheme(found: Found): SecurityScheme {
  const scheme = readObject(found, 'a security scheme')
  const text = (key: string) => {
    const value = scheme[key]
    return typeof value === 'string' && value !== ''
      ? value
      : fail(below(found.place, key), `\`${key}\` must be a string`)
  }
  const type = text('type')
  if (type === 'http') return { type, scheme: text('scheme').toLowerCase() }
  if (type === 'openIdConnect') return { type, openIdConnectUrl: text('openIdConnectUrl') }
  if (type === 'mutualTLS') return { type }
  if (type === 'oauth2') return { type, ...readFlows(childOf(found, 'flows')) }
  const where = text('in')
  if (type === 'apiKey' && (where === 'query' || where === 'header' || where === 'cookie')) {
    return { type, name: text('name'), in: where }
  }
  return fail(below(found.place, type === 'apiKey' ? 'in' : 'type'), 'is not an OpenAPI security scheme')
}

function readFlows(flows: Found) {
  const list = Object.values(isObject(flows.value) ? flows.value : {}).filter(isObject)
  const first = (key: string) => list.map(flow => flow[key]).find(value => typeof value === 'string')
  const [tokenUrl, authorizationUrl] = [first('tokenUrl'), first('authorizationUrl')]
  const scopes = list.flatMap(({ scopes }) => Object.keys(isObject(scopes) ? scopes : {}))
  return {
    ...(tokenUrl !== undefined && { tokenUrl }),
    ...(authorizationUrl !== undefined && { authorizationUrl }),
    scopes: [...new Set(scopes)],
  }
}

/** Returns the security alternatives of an operation. Throws a DocumentError for undeclared schemes. */
export function readSecurity(api: Api, { operation, place }: Candidate): SecurityRequirement[] {
  const own = operation['security'] !== undefined
  const found = childOf(own ? { value: operation, place } : { value: api.root, place: api.place }, 'security')
  if (found.value === undefined) return []
  if (!Array.isArray(found.value)) return fail(found.place, '`security` must be a list')
  return found.value.map((requirement: unknown, index) => {
    const at = below(found.place, index)
    return new Map(
      Object.entries(readObject({ value: requirement, place: at }, 'a security requirement')).map(([name, scopes]) => {
        if (!api.securitySchemes.has(name)) fail(below(at, name), `there is no security scheme "${name}"`)
        return [name, Array.isArray(scopes) ? scopes.filter(scope => typeof scope === 'string') : []]
      }),
    )
  })
}

/** Returns all operations, and the faults of unreadable ones. Rethrows MissingDocument errors. */
export function listCandidates(api: Api): { candidates: Candidate[]; faults: DocumentError[] } {
  const paths = childOf({ value: api.root, place: api.place }, 'paths')
  const candidates: Candidate[] = []
  const faults: DocumentError[] = []
  const seen = new Set<string>()
  for (const path of Object.keys(paths.value === undefined ? {} : readObject(paths, '`paths`'))) {
    // Keys without a slash are extensions.
    if (!path.startsWith('/')) continue
    try {
      for (const candidate of readOperations(api, path, api.references.follow(childOf(paths, path)))) {
        const { operationId, place } = candidate
        const isDuplicate = operationId !== undefined && seen.has(operationId)
        if (isDuplicate)
          api.note(
            below(place, 'operationId'),
            `"${operationId}" is used twice: this operation is identified by method and path`,
          )
        if (operationId !== undefined) seen.add(operationId)
        const { operationId: _, ...unnamed } = candidate
        candidates.push(isDuplicate ? { ...unnamed, id: defaultId(candidate) } : candidate)
      }
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error
      faults.push(error)
    }
  }
  return { candidates, faults }
}

export const defaultId = ({ method, path }: Pick<Candidate, 'method' | 'path'>): string =>
  `${method.toUpperCase()} ${path}`

function* readOperations(api: Api, path: string, pathItem: Found): Generator<Candidate> {
  const item = readObject(pathItem, 'a path item')
  for (const method of METHODS) {
    const found = childOf(pathItem, method)
    if (found.value === undefined) continue
    const operation = readObject(found, 'an operation')
    const { operationId, tags, deprecated } = operation
    const named = typeof operationId === 'string' && operationId.trim() !== '' ? operationId : undefined
    yield {
      id: named ?? defaultId({ method, path }),
      ...(named !== undefined && { operationId: named }),
      method,
      path,
      tags: Array.isArray(tags) ? tags.filter(tag => typeof tag === 'string') : [],
      deprecated: deprecated === true,
      operation,
      place: found.place,
      pathItem: { value: item, place: pathItem.place },
    }
  }
  for (const key of Object.keys(item)) {
    if (key === 'query' || key === 'additionalOperations')
      api.note(below(pathItem.place, key), 'is ignored: it requires OpenAPI 3.2')
  }
}
