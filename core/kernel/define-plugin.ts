// A plugin: the schema of its options, what it needs and provides, and its set-up, which is given the host.
import type { User } from './user.ts'

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** Not spread over a union: the values of an enum belong to one schema. */
type Primitive<T> = [T] extends [string]
  ? { type: 'string'; enum?: readonly T[]; default?: T; pattern?: string; format?: string; writeOnly?: true }
  : [T] extends [number]
    ? { type: 'integer' | 'number'; minimum?: number; maximum?: number; default?: T }
    : [T] extends [boolean]
      ? { type: 'boolean'; default?: boolean }
      : never

/** The schema of one option: primitives are held to their type, everything else is a JSON Schema. */
type OptionSchema<T> = (
  | (string extends T ? (number extends T ? JsonSchema : Primitive<string>) : never)
  | ([T] extends [string | number | boolean] ? ([T] extends [boolean] ? Primitive<boolean> : Primitive<T>) : JsonSchema)
) & { description?: string }

/**
 * The JSON Schema of a plugin's options: one entry an option, none missing and none more. `writeOnly: true` marks a
 * secret: it is never shown, and loses the line break that a file ends with.
 */
export interface OptionsSchema<Options, Filled extends Options = Options> {
  type: 'object'
  title?: string
  description?: string
  additionalProperties: false
  properties: { [K in keyof Options]-?: OptionSchema<NonNullable<Options[K]>> & Standard<Options, Filled, K> }
  required?: readonly (keyof Options & string)[]
  /** What `$ref: '#/$defs/<name>'` names. */
  $defs?: Readonly<Record<string, JsonSchema>>
}

/** An option that may be left out and is yet there for `setup` has a default. */
type Standard<Options, Filled extends Options, K extends keyof Options> =
  Pick<Options, K> extends Required<Pick<Options, K>>
    ? unknown
    : Pick<Filled, K> extends Required<Pick<Options, K>>
      ? { default: unknown }
      : unknown

/**
 * Top-level keys of the config that several plugins share, each with the schema of what stands there. Plugins that share
 * one give the very same schema object.
 */
export type SectionSchemas<Sections extends object> = {
  readonly [Name in keyof Sections]-?: OptionsSchema<Sections[Name] & object> & {
    readonly minProperties?: number
    readonly examples?: ReadonlyArray<Sections[Name]>
  }
}

/** How a plugin reads the sections that it declares. */
export interface SectionReader<Sections extends object> {
  /** What the config has there, with its defaults; undefined where it has nothing. */
  section<Name extends keyof Sections & string>(name: Name): Sections[Name] | undefined
}

/** A user whom a test makes up; default: `tester`, without scopes and roles. `claims` go over what the rest comes to. */
export type TestUser = Partial<Pick<User, 'subject' | 'clientId' | 'scopes' | 'roles' | 'claims'>>

/** How a plugin that says who calls is tested: by an issuer of the test's own, in the place of the config's. */
export interface UnderTest<Options> {
  readonly options: Options
  /** A token of this user for a resource, which expires in so many seconds. */
  issue(user: TestUser, resource: string, lifetime: number): string
  close?(): Promise<void>
}

/** `Filled` are the options as `setup` gets them: those that have a default are there. */
export interface Plugin<
  Options extends object,
  Host = never,
  Filled extends Options = Options,
  Sections extends object = object,
> {
  /** Its schema; defaults written there, nested ones too, are filled in before `setup`. */
  options: OptionsSchema<Options, Filled>
  /** Capabilities that another plugin must provide, such as `'user'`; fixes the order of set-up. */
  needs?: readonly string[]
  /** Capabilities that this plugin provides to others. */
  provides?: readonly string[]
  sections?: SectionSchemas<Sections>
  setup(host: Host & SectionReader<Sections>, options: Filled): void | Promise<void>
  /** For `testHost`, of a plugin that provides `user`: the same options, as written, with an issuer that makes up users. */
  underTest?(options: Options): Promise<UnderTest<Options>>
}

const CONFIGURED = Symbol.for('mcp-host.configured-plugin')

/** A plugin with its options: a value of the config's `plugins`. */
export interface ConfiguredPlugin {
  readonly [CONFIGURED]: true
  readonly plugin: Plugin<object>
  readonly options: object
}

export const isConfiguredPlugin = (value: unknown): value is ConfiguredPlugin =>
  typeof value === 'object' && value !== null && CONFIGURED in value

/** Calling a plugin configures it; the plugin's own description is readable beside that. */
export type PluginFactory<
  Options extends object,
  Host = never,
  Filled extends Options = Options,
  Sections extends object = object,
> = ((options?: Options) => ConfiguredPlugin) & { readonly plugin: Plugin<Options, Host, Filled, Sections> }

/** True for a plugin that was not called: what `definePlugin` returned. */
export const isPluginFactory = (value: unknown): value is PluginFactory<object> =>
  typeof value === 'function' && 'plugin' in value

/** Makes a plugin of its options' schema and its set-up. */
export function definePlugin<
  Options extends object,
  Host = never,
  Filled extends Options = Options,
  Sections extends object = object,
>(plugin: Plugin<Options, Host, Filled, Sections>): PluginFactory<Options, Host, Filled, Sections> {
  const configure = (options?: Options): ConfiguredPlugin => ({
    [CONFIGURED]: true,
    plugin: plugin as unknown as Plugin<object>,
    options: options ?? {},
  })
  return Object.assign(configure, { plugin })
}
