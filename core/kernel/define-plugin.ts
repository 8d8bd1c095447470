// A plugin: the schema of its options, what it needs and provides, and its set-up, which is given the host.

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
  | (string extends T ? ([T] extends [string] ? Primitive<string> : JsonSchema) : never)
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
}

/** A plugin as it is written: one without options may leave out their schema. */
export type PluginDeclaration<Options extends object, Host, Filled extends Options, Sections extends object> = Omit<
  Plugin<Options, Host, Filled, Sections>,
  'options'
> &
  ([keyof Options] extends [never]
    ? { options?: OptionsSchema<Options, Filled> }
    : { options: OptionsSchema<Options, Filled> })

const NO_OPTIONS = { type: 'object', additionalProperties: false, properties: {} } as const

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

/** Makes a plugin of its options' schema, which may be left out where it has none, and its set-up. */
export function definePlugin<
  Options extends object,
  Host = never,
  Filled extends Options = Options,
  Sections extends object = object,
>(written: PluginDeclaration<Options, Host, Filled, Sections>): PluginFactory<Options, Host, Filled, Sections> {
  const given = written as Plugin<Options, Host, Filled, Sections>
  const plugin = given.options === undefined ? { ...given, options: NO_OPTIONS as typeof given.options } : given
  const configure = (options?: Options): ConfiguredPlugin => ({
    [CONFIGURED]: true,
    plugin: plugin as unknown as Plugin<object>,
    options: options ?? {},
  })
  return Object.assign(configure, { plugin })
}
