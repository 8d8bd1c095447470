// Maps parameters and body of an operation to the arguments of a tool.
import type { JsonSchema } from '../../core/index.ts'
import { isObject } from '../../core/plugin.ts'
import { freeName, toArgumentName } from './names.ts'
import { type ArgumentPath, type OperationArguments, type Parameter, PLACES, type RequestBody } from './operation.ts'
import type { Override } from './options.ts'
import type { ReadBody } from './read-body.ts'
import type { ReadParameter } from './read-parameters.ts'

type Schema = JsonSchema | boolean

interface Argument {
  /** The name before overrides, which refer to this name. */
  readonly name: string
  readonly path: ArgumentPath
  readonly schema: Schema
  readonly required: boolean
}

export interface ArgumentValue {
  readonly path: ArgumentPath
  readonly value?: unknown
  readonly default?: unknown
}

type Grouping = 'flat' | 'grouped'

export function mapArguments(
  parameters: readonly ReadParameter[],
  body: ReadBody | undefined,
  grouping: Grouping,
  overrides: NonNullable<Override['arguments']> = {},
) {
  const { list, from, ...placed } = placeArguments(parameters, body, grouping)
  const findOverride = ({ name }: Argument) => (Object.hasOwn(overrides, name) ? overrides[name] : undefined)
  const renamed = new Map(list.map(one => [one.path, pathWith(one.path, findOverride(one)?.name)]))
  const final = (path: ArgumentPath) => renamed.get(path) ?? path
  const changed = list.map(one => ({ ...one, path: final(one.path), override: findOverride(one) }))
  const listed = changed.filter(({ override }) => !override || !('value' in override)).map(applyOverride)
  return {
    parameters: placed.parameters.map(one => ({ ...one, argument: final(one.argument) })),
    ...(body && from && { body: bodyWith(body, from, final) }),
    /** The input schema without `$defs`. */
    input: createInput(listed),
    /** The arguments that each call must have. */
    required: listed.filter(({ required }) => required).map(({ path }) => path),
    values: changed.flatMap(({ path, override }): ArgumentValue | [] =>
      override && ('value' in override || 'default' in override)
        ? { path, value: override.value, default: override.default }
        : [],
    ),
    /** Names in `overrides` that match no argument. */
    unknownArguments: Object.keys(overrides).filter(name => !list.some(one => one.name === name)),
  }
}

const pathWith = (path: ArgumentPath, name: string | undefined): ArgumentPath =>
  name === undefined ? path : ([...path.slice(0, -1), name] as unknown as ArgumentPath)

function bodyWith(body: ReadBody, from: RequestBody['from'], final: (path: ArgumentPath) => ArgumentPath): RequestBody {
  const { description: _, object: __, ...rest } = body
  if ('argument' in from) return { ...rest, from: { argument: final(from.argument) } }
  return { ...rest, from: { properties: new Map([...from.properties].map(([name, path]) => [name, final(path)])) } }
}

const parameterOf = (
  { description: _, deprecated: __, ...rest }: ReadParameter,
  argument: ArgumentPath,
): Parameter => ({
  ...rest,
  argument,
})

function argumentSchema({ schema, description, deprecated }: ReadParameter): JsonSchema {
  if (description === undefined && !deprecated) return schema
  return { ...schema, ...(description !== undefined && { description }), ...(deprecated && { deprecated }) }
}

/** Assigns argument names in the order path, query, header, cookie, body. Later duplicates get a suffix. */
function placeArguments(parameters: readonly ReadParameter[], body: ReadBody | undefined, grouping: Grouping) {
  const list: Argument[] = []
  const taken = new Map<string | undefined, Set<string>>()
  const place = (
    group: string | undefined,
    name: string,
    suffix: string,
    about: Pick<Argument, 'schema' | 'required'>,
  ): ArgumentPath => {
    const names = taken.get(group) ?? new Set()
    const unique = freeName(toArgumentName(name), suffix, names)
    taken.set(group, names.add(unique))
    const path = group === undefined ? ([unique] as const) : ([group, unique] as const)
    list.push({ name: path.join('.'), path, ...about })
    return path
  }
  const sorted = PLACES.flatMap(group => parameters.filter(one => one.in === group))
  const placed = sorted.map(one => {
    const about = { schema: argumentSchema(one), required: one.required }
    return parameterOf(one, place(grouping === 'grouped' ? one.in : undefined, one.name, one.in, about))
  })
  return { list, parameters: placed, from: body && placeBody(body) }

  function placeBody({ object, ...whole }: ReadBody): RequestBody['from'] {
    if (!object || grouping === 'grouped') {
      const about = { schema: placeWholeBody(whole), required: whole.required }
      return { argument: place(undefined, 'body', 'body', about) }
    }
    const { properties, required } = object
    const paths = Object.entries(properties).map(([name, schema]) => {
      const about = { schema, required: whole.required && required.includes(name) }
      return [name, place(undefined, name, 'body', about)] as const
    })
    return { properties: new Map(paths) }
  }
}

const placeWholeBody = ({ schema, description }: ReadBody): JsonSchema =>
  description === undefined || 'description' in schema ? schema : { ...schema, description }

type Overridden = Argument & { readonly override: NonNullable<Override['arguments']>[string] | undefined }

function applyOverride({ override = {}, ...argument }: Overridden): Argument {
  const hasDefault = 'default' in override
  if (!hasDefault && override.description === undefined) return argument
  const schema = argument.schema === true ? {} : argument.schema
  if (schema === false) return argument
  const { description } = override
  return {
    ...argument,
    required: argument.required && !hasDefault,
    schema: {
      ...schema,
      ...(description !== undefined && { description }),
      ...(hasDefault && { default: override.default }),
    },
  }
}

function createInput(list: readonly Argument[]): JsonSchema {
  const groups = new Map<string, Argument[]>()
  const flat: Argument[] = []
  for (const argument of list) {
    const [group, name] = argument.path
    if (name === undefined) flat.push(argument)
    else groups.set(group, [...(groups.get(group) ?? []), argument])
  }
  const inner = [...groups].map(
    ([group, members]) =>
      [
        group,
        objectSchema(members.map(one => [one.path[1] ?? '', one.schema, one.required])),
        members.some(({ required }) => required),
      ] as const,
  )
  return objectSchema([...inner, ...flat.map(one => [one.path[0], one.schema, one.required] as const)])
}

function objectSchema(members: ReadonlyArray<readonly [name: string, schema: Schema, required: boolean]>): JsonSchema {
  const required = members.filter(([, , isRequired]) => isRequired).map(([name]) => name)
  return {
    type: 'object',
    ...(members.length > 0 && { properties: Object.fromEntries(members) }),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
}

export const fillArguments = (args: OperationArguments, values: readonly ArgumentValue[]): OperationArguments =>
  values.reduce((filled, one) => setValue(filled, one.path, one), args)

/** Sets a fixed value, or a default value if the argument is missing. */
export function setValue(
  args: OperationArguments,
  [key = '', ...rest]: readonly string[],
  about: Omit<ArgumentValue, 'path'>,
): OperationArguments {
  const current = Object.hasOwn(args, key) ? args[key] : undefined
  if (rest.length > 0) return { ...args, [key]: setValue(isObject(current) ? current : {}, rest, about) }
  if (about.value !== undefined) return { ...args, [key]: about.value }
  return current === undefined ? { ...args, [key]: about.default } : args
}
