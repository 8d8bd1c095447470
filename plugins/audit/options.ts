// The options of audit.
import { choice, closed, count, list, mapOf, positiveDuration, size, words } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'

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

export const OPTIONS = closed(
  {
    file: words(
      'Output file, relative to the config; a missing folder is created. Each of several processes has its own: `audit.1.jsonl`.',
      { default: 'audit.jsonl' },
    ),
    onFailure: choice(
      ['warn', 'refuse'],
      'Behaviour if lines cannot be written: continue and count lost lines, or refuse calls.',
      { default: 'warn' },
    ),
    arguments: mapOf(
      { type: 'array', maxItems: 32, items: { type: 'string' } },
      'Names of top-level arguments to write, by tool. Other arguments are never written.',
      { default: {} },
    ),
    leaveOut: list(
      { type: 'string' },
      'Methods whose successful calls are not written. Refusals and failures are always written.',
      { default: LOOKING },
    ),
    subjects: choice(
      ['disguised', 'clear'],
      '`disguised`: a pseudonym of the user. `clear`: also subject and issuer.',
      { default: 'disguised' },
    ),
    sync: choice(
      ['always', 'second', 'never'],
      'fdatasync with each batch, every second, or never. It matters only for power failures.',
      { default: 'second' },
    ),
    headEvery: positiveDuration('Interval at which the newest hash is written to the log of the host.', {
      default: '10m',
    }),
    rotate: closed(
      {
        size: size('Maximum size of a file.', { minimum: 1, default: '100mb' }),
        age: positiveDuration('Maximum age of a file. Default: no limit.'),
        keep: count('Full files that are kept; older ones are removed. Default: all.'),
      },
      { default: {}, description: 'When a new file is started.' },
    ),
  },
  { description: 'A tamper-evident log with one line per call and refused request.' },
)

export interface AuditOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledAuditOptions extends OptionsOf<typeof OPTIONS, true> {}
