// A project's config in TypeScript: typed arguments, a plugin of its own, a wrong option that does not compile.
import { type Config, defineConfig, definePrompt, defineResource, defineTool, HostError } from 'mcp-host'
import { definePlugin } from 'mcp-host/plugin'

interface AuditOptions {
  prefix: string
  quiet?: boolean
}

const audit = definePlugin<AuditOptions>({
  options: {
    type: 'object',
    additionalProperties: false,
    properties: { prefix: { type: 'string' }, quiet: { type: 'boolean', default: false } },
    required: ['prefix'],
  },
  setup(host, { prefix }) {
    host.onCall(async (call, next) => {
      host.log.info({ method: call.method }, prefix)
      return next()
    })
    host.onRequest(async (ctx, next) => {
      if (ctx.get('X-Refuse') !== '') throw new HostError('forbidden')
      ctx.set('X-Audited', 'yes')
      await next()
    })
  },
})

const repeat = defineTool({
  name: 'repeat',
  input: {
    type: 'object',
    properties: { text: { type: 'string' }, times: { type: 'integer' }, loud: { type: 'boolean' } },
    required: ['text', 'times'],
  },
  handler({ text, times, loud }, { signal, user }) {
    const said: string = text.repeat(times)
    const isLoud: boolean | undefined = loud
    const subject: string | undefined = user?.subject
    signal.throwIfAborted()
    // @ts-expect-error: `times` is a number, not anything
    const wrong: string = times
    return `${isLoud ? said.toUpperCase() : said}${subject ?? ''}${wrong === said ? '' : '!'}`
  },
})

const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
const ask = definePrompt({ name: 'ask', handler: () => 'What now?' })

const config: Config = {
  server: { name: 'consumer', version: '1.0.0' },
  http: { port: 0 },
  toolsets: { all: [repeat, page, ask] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, health: { path: '/up' }, audit: audit({ prefix: 'audited' }) },
}

// @ts-expect-error: an option that the plugin does not have
export const unknownOption = audit({ prefix: 'audited', prefiks: '' })

export const wrongOption = defineConfig({
  ...config,
  // @ts-expect-error: a built-in plugin's option of the wrong type
  plugins: { health: { path: 7 } },
})

export default defineConfig(config)
