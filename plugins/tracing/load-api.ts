// Loads the OpenTelemetry API, an optional package.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { StartError } from '../../core/plugin.ts'

export type OpenTelemetry = typeof import('@opentelemetry/api')

const NAME = '@opentelemetry/api'

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND' && error.message.includes(NAME)

/** Loads the API, preferably the copy of the config's folder. Throws a StartError if there is none. */
export function loadApi(directory: string, here: string = import.meta.url): OpenTelemetry {
  // An API copy rejects an SDK that is older than the API, so the project's copy comes first.
  for (const from of [join(directory, 'package.json'), here]) {
    try {
      return createRequire(from)(NAME)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
  throw new StartError(
    'MH1040',
    `plugins.tracing: ${NAME} is not installed; install it in the folder of the config: npm i --save-prod ${NAME}`,
    { exitCode: 2 },
  )
}
