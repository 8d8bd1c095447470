// Reads the parameters of an operation.

import type { JsonSchema } from '../../core/index.ts'
import { isObject } from '../../core/plugin.ts'
import { visibleText } from '../families/texts/index.ts'
import { type Api, type Candidate, childOf, readObject } from './api.ts'
import { below, DocumentError } from './document/place.ts'
import type { Found } from './document/references.ts'
import { mediaTypeEssence } from './media-types.ts'
import { type Parameter, type ParameterPlace, type ParameterStyle, PLACES } from './operation.ts'
import { isReservedHeader } from './request-target.ts'

/** A parameter without its argument. */
export interface ReadParameter extends Omit<Parameter, 'argument'> {
  readonly description?: string
  readonly deprecated: boolean
}

const STYLES: Readonly<Record<ParameterPlace, readonly ParameterStyle[]>> = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
  cookie: ['form'],
}

const isPlace = (value: unknown): value is ParameterPlace => PLACES.some(place => place === value)

/** Returns the parameters of the path item, replaced by those of the operation with the same name and location. */
export function readParameters(api: Api, candidate: Candidate, uses: Set<string>): ReadParameter[] {
  const found = new Map<string, ReadParameter>()
  for (const holder of [candidate.pathItem, { value: candidate.operation, place: candidate.place }]) {
    const own = new Set<string>()
    for (const one of readList(childOf(holder, 'parameters'))) {
      const parameter = readParameter(api, api.references.follow(one), uses)
      if (!parameter) continue
      const key = `${parameter.in} ${parameter.name}`
      if (own.has(key))
        api.note(one.place, `is ignored: the parameter "${parameter.name}" in ${parameter.in} is declared twice`)
      else found.set(key, parameter)
      own.add(key)
    }
  }
  return addPathParameters(api, candidate, [...found.values()])
}

function readList(list: Found): Found[] {
  if (list.value === undefined) return []
  if (!Array.isArray(list.value)) throw new DocumentError(list.place, '`parameters` must be a list')
  return list.value.map((value: unknown, index) => ({ value, place: below(list.place, index) }))
}

/** Returns exactly the parameters of the template, then the others. */
function addPathParameters(
  api: Api,
  { path, place }: Candidate,
  parameters: readonly ReadParameter[],
): ReadParameter[] {
  const names = [...new Set([...path.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name))]
  const byName = new Map(parameters.filter(one => one.in === 'path').map(one => [one.name, one]))
  for (const name of byName.keys()) {
    if (!names.includes(name)) api.note(place, `is ignored: the path does not contain "{${name}}"`)
  }
  const ofPath = names.map(name => {
    const known = byName.get(name)
    if (known) return known
    api.note(place, `does not declare the path parameter "${name}": it is a string`)
    return { ...ANY_TEXT, name }
  })
  return [...ofPath, ...parameters.filter(one => one.in !== 'path')]
}

const FLAGS = { explode: false, allowReserved: false, allowEmptyValue: false, deprecated: false } as const
const ANY_TEXT = { ...FLAGS, in: 'path', required: true, style: 'simple', schema: { type: 'string' } } as const

/** Reads a parameter. Undefined for headers that the host or the connection sets. */
function readParameter(api: Api, found: Found, uses: Set<string>): ReadParameter | undefined {
  const parameter = readObject(found, 'a parameter')
  const { name, in: where, description, required, deprecated, allowReserved, allowEmptyValue } = parameter
  if (typeof name !== 'string' || name === '') throw new DocumentError(below(found.place, 'name'), 'must be a string')
  if (!isPlace(where)) throw new DocumentError(below(found.place, 'in'), `must be one of ${PLACES.join(', ')}`)
  if (where === 'header' && isReservedHeader(name)) return undefined
  return {
    name,
    in: where,
    required: where === 'path' || required === true,
    ...readForm(api, found, where, uses),
    allowReserved: where === 'query' && allowReserved === true,
    allowEmptyValue: where === 'query' && allowEmptyValue === true,
    deprecated: deprecated === true,
    ...(typeof description === 'string' && { description: visibleText(description) }),
  }
}

function readForm(api: Api, found: Found, where: ParameterPlace, uses: Set<string>) {
  const parameter = readObject(found, 'a parameter')
  const content = childOf(found, 'content')
  const schemaOf = (holder: Found): JsonSchema => {
    const schema = childOf(holder, 'schema')
    if (schema.value === undefined) return {}
    const converted = api.request.convert(schema, uses)
    return typeof converted === 'boolean' ? {} : converted
  }
  const [key] = isObject(content.value) ? Object.keys(content.value) : []
  if (key !== undefined && parameter['schema'] === undefined) {
    const media = api.references.follow(childOf(content, key))
    return { schema: schemaOf(media), contentType: mediaTypeEssence(key), explode: false }
  }
  const style = readStyle(api, found, where)
  const { explode } = parameter
  return { schema: schemaOf(found), style, explode: typeof explode === 'boolean' ? explode : style === 'form' }
}

function readStyle(api: Api, found: Found, where: ParameterPlace): ParameterStyle {
  const [standard = 'simple', ...others] = STYLES[where]
  const style = childOf(found, 'style')
  if (style.value === undefined) return standard
  const known = [standard, ...others].find(one => one === style.value)
  if (known === undefined) api.note(style.place, `is not a style for ${where}: using ${standard}`)
  return known ?? standard
}
