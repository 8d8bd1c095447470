// Documents with which clients find servers, as the drafts of 2026 have them: a server card at each route, and a catalog of
// them for the host. Experimental: each is served where the config names it.
import { type BuiltInOptions, definePlugin, type FilledOptions } from '../../core/index.ts'
import { publish } from './publish.ts'

export type DiscoveryOptions = BuiltInOptions['discovery']
/** The same with their defaults. */
export type FilledDiscovery = FilledOptions['discovery']

const NAME_SCHEMA = {
  type: 'string' as const,
  pattern: '^[A-Za-z\\d](?:[A-Za-z\\d-]*[A-Za-z\\d])?(?:\\.[A-Za-z\\d](?:[A-Za-z\\d-]*[A-Za-z\\d])?)+/[A-Za-z\\d._-]+$',
  patternErrorMessage: 'a reversed domain name, a slash and a name, such as com.acme/tools',
  description: 'A reversed domain name and a name, such as com.acme/tools. Default: server.name, if it is one.',
}
const DESCRIPTION_SCHEMA = {
  type: 'string' as const,
  pattern: '^[\\s\\S]{1,100}$',
  patternErrorMessage: '1 to 100 characters',
  description: 'What it is for, in 100 characters. Default: server.description, else its title or name.',
}

export const discovery = definePlugin<DiscoveryOptions, FilledDiscovery>({
  options: {
    type: 'object',
    description: 'Experimental: documents with which clients find this server.',
    additionalProperties: false,
    required: ['experimental'],
    properties: {
      experimental: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: { type: 'string', enum: ['server-card', 'ai-catalog'] },
        description:
          'Which are served: GET <route>/server-card, and /.well-known/ai-catalog.json. Their form may change.',
      },
      name: NAME_SCHEMA,
      description: DESCRIPTION_SCHEMA,
      protectedRoutes: {
        type: 'boolean',
        default: false,
        description: 'Whether routes with `authorize` have documents, too: everybody knows then that they are there.',
      },
    },
  },
  setup(host, options) {
    host.serving(services => publish(host, options, services))
  },
})
