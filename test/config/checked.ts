// A small schema, a plugin and a valid config, for the tests of checking.
import { checkConfig, type Problem } from '../../core/config/check-config.ts'
import { buildConfigSchema } from '../../core/config/config-schema.ts'
import type { Config } from '../../core/config/define-config.ts'
import { definePlugin } from '../../core/plugin-host.ts'
import { REDIS_SECTIONS } from '../../plugins/families/redis/index.ts'

export const SCHEMA = buildConfigSchema({
  health: {
    options: {
      type: 'object',
      additionalProperties: false,
      properties: { path: { type: 'string', examples: ['/health'] }, level: { enum: ['basic', 'full'] } },
      required: ['path'],
    },
    sections: REDIS_SECTIONS,
  },
})

export const audit = definePlugin<{ file: string; keep?: number }>({
  options: {
    type: 'object',
    additionalProperties: false,
    properties: { file: { type: 'string' }, keep: { type: 'integer' } },
    required: ['file'],
  },
  setup() {},
})

export const VALID: Config = {
  server: { name: 'a', version: '1' },
  toolsets: { a: './a.ts' },
  routes: { '/': { toolsets: 'a' } },
}

export const check = (config: unknown): Problem[] =>
  checkConfig({ file: '/etc/mcp.config.ts', config, locate: () => undefined }, SCHEMA)
export const checkWith = (changes: object): Problem[] => check({ ...VALID, ...changes })
