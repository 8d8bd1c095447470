// The plugin contract: options schema, capabilities and set-up.

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** The tuple prevents distribution, so that the values of an enum share one schema. */
type Primitive<T> = [T] extends [string]
  ? { type: 'string'; enum?: readonly T[]; default?: T; pattern?: string; format?: string; writeOnly?: true }
  : [T] extends [number]
    ? { type: 'integer' | 'number'; minimum?: number; maximum?: number; default?: T }
    : [T] extends [boolean]
      ? { type: 'boolean'; default?: boolean }
      : never

type OptionSchema<T> = (
  | (string extends T ? ([T] extends [string] ? Primitive<string> : JsonSchema) : never)
  | ([T] extends [string | number | boolean] ? ([T] extends [boolean] ? Primitive<boolean> : Primitive<T>) : JsonSchema)
) & { description?: string }

/** The JSON Schema of a plugin's options. `writeOnly: true` marks a secret: never shown, without final line breaks. */
interface OptionsSchema<Options, Filled extends Options = Options> {
  type: 'object'
  title?: string
  description?: string
  additionalProperties: false
  properties: { [K in keyof Options]-?: OptionSchema<NonNullable<Options[K]>> & RequireDefault<Options, Filled, K> }
  required?: readonly (keyof Options & string)[]
  $defs?: Readonly<Record<string, JsonSchema>>
}

/** An option with a default is optional in the config and present in `setup`. */
type RequireDefault<Options, Filled extends Options, K extends keyof Options> =
  Pick<Options, K> extends Required<Pick<Options, K>>
    ? unknown
    : Pick<Filled, K> extends Required<Pick<Options, K>>
      ? { default: unknown }
      : unknown

/** Top-level config keys that several plugins share. These plugins must use the same schema. */
export type SectionSchemas<Sections extends object> = {
  readonly [Name in keyof Sections]-?: OptionsSchema<Sections[Name] & object> & {
    readonly minProperties?: number
    readonly examples?: ReadonlyArray<Sections[Name]>
  }
}

/** Reads the config sections that a plugin declares. */
export interface SectionReader<Sections extends object> {
  readonly config: {
    /** The value in the config with defaults, if present. */
    section<Name extends keyof Sections & string>(name: Name): Sections[Name] | undefined
  }
}

/** `Filled`: the options with defaults, as passed to `setup`. */
export interface Plugin<
  Options extends object,
  Host = never,
  Filled extends Options = Options,
  Sections extends object = object,
> {
  /** Defaults, including nested ones, are filled in before `setup`. */
  options: OptionsSchema<Options, Filled>
  /** Required capabilities of other plugins, such as `'user'`. Those plugins are set up first. */
  needs?: readonly string[]
  /** Capabilities offered to other plugins. */
  provides?: readonly string[]
  sections?: SectionSchemas<Sections>
  /** The route key that contains the plugin's options and enables the plugin for the route. */
  routeKey?: string
  /** The key of the config's `store` that contains the plugin's options and enables the plugin. */
  storeKey?: string
  /** JSON Schemas of tool keys. `setup` registers what they do: see `toolKey` of its host. */
  toolKeys?: Readonly<Record<string, JsonSchema>>
  /**
   * Members of `ctx`, each with its value on routes without the plugin. `setup` registers the values of its routes: see
   * `context` of its host.
   */
  context?: object
  /** Registers what the plugin does; can be async. */
  setup(host: Host & SectionReader<Sections>, options: Filled): unknown
}

/** A plugin as declared; `options` can be omitted. */
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

/** A result of `definePlugin`: call it with options to configure the plugin. `plugin` is its declaration. */
export interface PluginFactory<
  Options extends object,
  Host = never,
  Filled extends Options = Options,
  Sections extends object = object,
> {
  (options?: Options): ConfiguredPlugin
  readonly plugin: Plugin<Options, Host, Filled, Sections>
}

export const isPluginFactory = (value: unknown): value is PluginFactory<object> =>
  typeof value === 'function' && 'plugin' in value

export function createPluginFactory<Options extends object, Host, Filled extends Options, Sections extends object>(
  declaration: PluginDeclaration<Options, Host, Filled, Sections>,
): PluginFactory<Options, Host, Filled, Sections> {
  const typed = declaration as Plugin<Options, Host, Filled, Sections>
  const plugin = typed.options === undefined ? { ...typed, options: NO_OPTIONS as typeof typed.options } : typed
  const configure = (options?: Options): ConfiguredPlugin => ({
    [CONFIGURED]: true,
    plugin: plugin as unknown as Plugin<object>,
    options: options ?? {},
  })
  return Object.assign(configure, { plugin })
}
