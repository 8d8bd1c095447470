// The sections of a config: top-level keys that plugins declare because several of them share what stands there.
// For config-schema.ts, which puts them into the whole, and create-host.ts, which knows the plugins.
import { StartError } from '../http/errors.ts'

export interface Section {
  /** JSON Schema of what stands there. */
  readonly schema: object
  /** The first plugin that declares it. */
  readonly plugin: string
}

/** By the name of its key. */
export type Sections = ReadonlyMap<string, Section>

type Declaring = readonly [name: string, plugin: { readonly sections?: object }]

/** The sections of these plugins. Throws a StartError where two of them mean different things by one name. */
export function collectSections(plugins: Iterable<Declaring>): Sections {
  const sections = new Map<string, Section>()
  for (const [plugin, { sections: declared = {} }] of plugins) {
    for (const [name, schema] of Object.entries(declared) as [string, object][]) {
      const known = sections.get(name)
      if (known && known.schema !== schema) {
        const why = `it declares the section "${name}", and so does ${known.plugin}, with another schema`
        throw new StartError(`${why}; those who share one need one schema object`, { at: ['plugins', plugin] })
      }
      if (!known) sections.set(name, { schema, plugin })
    }
  }
  return sections
}

/** Throws a StartError where a section has the name of one of these keys, which are the host's own. */
export function checkSectionNames(sections: Sections, taken: readonly string[]): void {
  for (const [name, { plugin }] of sections) {
    if (!taken.includes(name)) continue
    throw new StartError(`it declares the section "${name}", which is a key of the host's own`, {
      at: ['plugins', plugin],
    })
  }
}
