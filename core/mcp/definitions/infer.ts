// Infers the type of validated values from a schema. Types only.

/** Requires JSON Schema support: zod >= 4.2, arktype >= 2.1.28, or valibot's `toStandardJsonSchema`. */
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

interface TypeByName {
  string: string
  number: number
  integer: number
  boolean: boolean
  null: null
}

declare const TYPE: unique symbol

/** Marks a schema for types that JSON Schema cannot express, such as functions. */
export interface Typed<T> {
  readonly [TYPE]?: T
}

type Simplify<T> = { [K in keyof T]: T[K] }

type KeysWithDefault<P> = { [K in keyof P]: P[K] extends { default: unknown } ? K : never }[keyof P]
type RequiredKeys<S, P, Filled> = Extract<
  keyof P,
  (S extends { required: readonly (infer R)[] } ? R : never) | (Filled extends true ? KeysWithDefault<P> : never)
>

// Mapped over the keys of P, so that editors show their comments.
type PropertyTypes<P, K extends keyof P, Filled> = { -readonly [X in K]: FromJsonSchema<P[X], Filled> }

type FromProperties<P, R extends keyof P, Filled> = Simplify<
  PropertyTypes<P, R, Filled> & Partial<PropertyTypes<P, Exclude<keyof P, R>, Filled>>
>

type FromObject<S, Filled> = S extends { properties: infer P }
  ? FromProperties<P, RequiredKeys<S, P, Filled>, Filled>
  : S extends { additionalProperties: infer A extends object }
    ? Record<string, FromJsonSchema<A, Filled>>
    : Record<string, unknown>

type FromTypeName<N, S, Filled> = N extends keyof TypeByName
  ? TypeByName[N]
  : N extends 'object'
    ? FromObject<S, Filled>
    : N extends 'array'
      ? Array<S extends { items: infer I } ? FromJsonSchema<I, Filled> : unknown>
      : unknown

/** The type of a JSON Schema literal. With `Filled`, properties with a default are required. */
export type FromJsonSchema<S, Filled = false> = S extends unknown
  ? typeof TYPE extends keyof S
    ? NonNullable<S[typeof TYPE]>
    : FromKeywords<S, Filled>
  : never

type FromKeywords<S, Filled> = S extends { const: infer C }
  ? C
  : S extends { enum: readonly (infer E)[] }
    ? E
    : S extends { anyOf: readonly (infer A)[] }
      ? FromJsonSchema<A, Filled>
      : S extends { oneOf: readonly (infer A)[] }
        ? FromJsonSchema<A, Filled>
        : S extends { type: infer N }
          ? N extends readonly (infer M)[]
            ? FromTypeName<M, S, Filled>
            : FromTypeName<N, S, Filled>
          : unknown

export type ValueOf<S> = S extends StandardSchema<infer _Input, infer Output> ? Output : FromJsonSchema<S>

/** The input of a schema, before defaults and conversions. */
export type GivenFor<S> = S extends StandardSchema<infer Input, infer _Output> ? Input : FromJsonSchema<S>
