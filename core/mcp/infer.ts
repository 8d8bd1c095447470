// Infers types from the schemas of definitions.

/** Standard Schema (standardschema.dev) with JSON Schema: zod >= 4.2, arktype >= 2.1.28, `toStandardJsonSchema` of valibot. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>
      readonly output: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>
    }
  }
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: ReadonlyArray<{
        readonly message: string
        readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
      }>
    }

type Simplify<T> = { [K in keyof T]: T[K] }

interface TypeByName {
  string: string
  number: number
  integer: number
  boolean: boolean
  null: null
}

type FromProperties<P, R> = Simplify<
  { -readonly [K in keyof P as K extends R ? K : never]: FromJsonSchema<P[K]> } & {
    -readonly [K in keyof P as K extends R ? never : K]?: FromJsonSchema<P[K]>
  }
>

type FromObject<S> = S extends { properties: infer P }
  ? FromProperties<P, S extends { required: readonly (infer R)[] } ? R : never>
  : S extends { additionalProperties: infer A extends object }
    ? Record<string, FromJsonSchema<A>>
    : Record<string, unknown>

type FromTypeName<N, S> = N extends keyof TypeByName
  ? TypeByName[N]
  : N extends 'object'
    ? FromObject<S>
    : N extends 'array'
      ? Array<S extends { items: infer I } ? FromJsonSchema<I> : unknown>
      : unknown

/** The type of a JSON Schema literal, from `type`, `properties`, `required`, `items`, `enum`, `const`, `anyOf` and `oneOf`. */
export type FromJsonSchema<S> = S extends { const: infer C }
  ? C
  : S extends { enum: readonly (infer E)[] }
    ? E
    : S extends { anyOf: readonly (infer A)[] }
      ? FromJsonSchema<A>
      : S extends { oneOf: readonly (infer A)[] }
        ? FromJsonSchema<A>
        : S extends { type: infer N }
          ? N extends readonly (infer M)[]
            ? FromTypeName<M, S>
            : FromTypeName<N, S>
          : unknown

/** The validated value of either kind of schema. */
export type ValueOf<S> = S extends StandardSchema<infer _Input, infer Output> ? Output : FromJsonSchema<S>

/** The value before validation, to which a library can add defaults. */
export type GivenFor<S> = S extends StandardSchema<infer Input, infer _Output> ? Input : FromJsonSchema<S>
