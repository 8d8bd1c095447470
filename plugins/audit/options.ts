// The options of audit.
import { DURATION_PATTERN, type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'

/** Read-only methods. */
const LOOKING = [
  'ping',
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'logging/setLevel',
  'subscriptions/listen',
]

export const OPTIONS = {
  type: 'object',
  description: 'A line for each request that did something or was refused, in a chain that shows what was changed.',
  additionalProperties: false,
  properties: {
    file: {
      type: 'string',
      default: 'audit.jsonl',
      description:
        'Output file, relative to the config; a missing folder is created. Each of several processes has its own: `audit.1.jsonl`.',
    },
    onFailure: {
      type: 'string',
      enum: ['warn', 'refuse'],
      default: 'warn',
      description: 'While lines cannot be written: serve on and count those that are lost, or refuse calls.',
    },
    arguments: {
      type: 'object',
      default: {},
      description: 'By tool, the names of top-level arguments that are written. All others never are.',
      additionalProperties: { type: 'array', maxItems: 32, items: { type: 'string' } },
    },
    leaveOut: {
      type: 'array',
      items: { type: 'string' },
      default: LOOKING,
      description: 'Methods whose calls leave no line where they went well. Refusals and failures always do.',
    },
    subjects: {
      type: 'string',
      enum: ['disguised', 'clear'],
      default: 'disguised',
      description: '`clear`: subject and issuer as they are, beside what stands for the user.',
    },
    sync: {
      type: 'string',
      enum: ['always', 'second', 'never'],
      default: 'second',
      description:
        'When lines are brought to the disk itself: with each batch, once a second, or when the system likes.',
    },
    headEvery: {
      type: 'string',
      pattern: `^(?=.*[1-9])${DURATION_PATTERN.slice(1)}`,
      default: '10m',
      description: "How often the host's log tells the newest hash, where there is a new one.",
    },
    rotate: {
      type: 'object',
      default: {},
      description: 'When a new file is started.',
      additionalProperties: false,
      properties: {
        size: {
          type: ['string', 'integer'],
          pattern: SIZE_PATTERN,
          minimum: 1,
          default: '100mb',
          description: 'Maximum size of a file.',
        },
        age: {
          type: 'string',
          pattern: `^(?=.*[1-9])${DURATION_PATTERN.slice(1)}`,
          description: 'Maximum age of a file. Default: no limit.',
        },
        keep: {
          type: 'integer',
          minimum: 1,
          description: 'Full files that are kept; older ones are removed. Default: all.',
        },
      },
    },
  },
} as const

export interface AuditOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledAuditOptions extends OptionsOf<typeof OPTIONS, true> {}
