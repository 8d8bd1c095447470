// Writes a reference page per public symbol from the source comments: `npm run reference`, before the site is built.
// TypeDoc requires the JavaScript API of TypeScript 6, which TypeScript 7 does not have.
import { readFileSync } from 'node:fs'
import { Application } from 'typedoc'

const { name, exports } = JSON.parse(readFileSync('../package.json', 'utf8'))

/** The source file of each entry of the package. */
const entries = new Map(
  Object.entries(exports).flatMap(([path, { types }]) =>
    types === undefined ? [] : [[types.replace('./dist/', '').replace('.d.ts', ''), `${name}${path.slice(1)}`]],
  ),
)

const app = await Application.bootstrapWithPlugins({
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: [...entries.keys()].map(file => `../${file}.ts`),
  tsconfig: 'tsconfig.reference.json',
  out: 'reference',
  name: 'Reference',
  readme: 'none',
  sortEntryPoints: false,
  excludePrivate: true,
  // Members of `Error`.
  excludeExternals: true,
  excludeInternal: true,
  disableSources: true,
  // `npm run types` checks the types.
  skipErrorChecking: true,
  // Types that are not exported are described where they are used.
  validation: { notExported: false },
  outputFileStrategy: 'members',
  entryFileName: 'index',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  tableColumnSettings: { hideInherited: true, hideModifiers: true, hideOverrides: true, hideSources: true },
  pageTitleTemplates: { index: 'Reference', module: '{name}', member: '{name}' },
  logLevel: 'Warn',
})
const project = await app.convert()
if (!project) throw new Error('the sources do not compile')
for (const module of project.children ?? []) {
  const entry = entries.get(module.name) ?? entries.get(`${module.name}/index`)
  if (entry === undefined) throw new Error(`"${module.name}" is not an entry of package.json`)
  module.name = entry
}
await app.generateOutputs(project)
if (app.logger.hasErrors()) process.exit(1)
