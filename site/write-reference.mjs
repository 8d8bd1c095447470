// The reference of every entry of the package, from the comments of the sources: `npm run reference`, before the site is
// built. TypeScript 7 has no JS API, so this folder brings the last one that has.
import { Application } from 'typedoc'

/** What a module is called by those who import it. */
const ENTRIES = {
  core: 'mcp-host',
  'core/embed': 'mcp-host/host',
  'core/plugin': 'mcp-host/plugin',
  'core/testing': 'mcp-host/testing',
  client: 'mcp-host/client',
  'client/node': 'mcp-host/client/node',
}

const app = await Application.bootstrapWithPlugins({
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: [
    '../core/index.ts',
    '../core/embed.ts',
    '../core/plugin.ts',
    '../core/testing.ts',
    '../client/index.ts',
    '../client/node/index.ts',
  ],
  tsconfig: 'tsconfig.reference.json',
  out: 'reference',
  name: 'Reference',
  readme: 'none',
  sortEntryPoints: false,
  excludePrivate: true,
  // What `Error` has by itself.
  excludeExternals: true,
  excludeInternal: true,
  disableSources: true,
  // Types that are reached but not exported are described where they are used.
  validation: { notExported: false },
  outputFileStrategy: 'modules',
  entryFileName: 'index',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  pageTitleTemplates: { index: 'Reference', module: '{name}' },
  logLevel: 'Warn',
})
const project = await app.convert()
if (!project) throw new Error('the sources do not compile')
for (const module of project.children ?? []) {
  const name = ENTRIES[module.name]
  if (name === undefined) throw new Error(`"${module.name}" is no entry that the reference knows`)
  module.name = name
}
await app.generateOutputs(project)
if (app.logger.hasErrors()) process.exit(1)
