// The options of audit.
import { DURATION_PATTERN, type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'

/** Methods that only read. */
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
  description: 'A tamper-evident log with one line per call and refused request.',
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
      description: 'Behaviour if lines cannot be written: continue and count lost lines, or refuse calls.',
    },
    arguments: {
      type: 'object',
      default: {},
      description: 'Names of top-level arguments to write, by tool. Other arguments are never written.',
      additionalProperties: { type: 'array', maxItems: 32, items: { type: 'string' } },
    },
    leaveOut: {
      type: 'array',
      items: { type: 'string' },
      default: LOOKING,
      description: 'Methods whose successful calls are not written. Refusals and failures are always written.',
    },
    subjects: {
      type: 'string',
      enum: ['disguised', 'clear'],
      default: 'disguised',
      description: '`disguised`: a pseudonym of the user. `clear`: also subject and issuer.',
    },
    sync: {
      type: 'string',
      enum: ['always', 'second', 'never'],
      default: 'second',
      description: 'fdatasync with each batch, every second, or never. It matters only for power failures.',
    },
    headEvery: {
      type: 'string',
      pattern: `^(?=.*[1-9])${DURATION_PATTERN.slice(1)}`,
      default: '10m',
      description: 'Interval at which the newest hash is written to the log of the host.',
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
