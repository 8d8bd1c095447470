// The audit trail of a host: takes the lock, and chooses the file of one of several processes.
import { dirname } from 'node:path'
import { errorText, StartError } from '../../core/index.ts'
import { makeFolderOf } from '../families/own-file/index.ts'
import { type FileLock, lockFile, lockFirst } from './file-lock.ts'
import { seatOf } from './files.ts'
import { Trail, type TrailSettings } from './trail.ts'

export class OpenTrail {
  readonly #settings: TrailSettings
  readonly #processes: number
  #trail: Trail | undefined
  #lock: FileLock | undefined

  /** With several `processes` each takes the first free file. */
  constructor(settings: TrailSettings, processes: number) {
    this.#settings = settings
    this.#processes = processes
  }

  get failure(): string | undefined {
    return this.#trail?.failure
  }

  /** A full disk does not prevent startup: writing is retried. */
  async start(): Promise<void> {
    const trail = new Trail({ ...this.#settings, claim: () => this.#claim() })
    try {
      makeFolderOf(this.#settings.path)
      await trail.start()
    } catch (error) {
      await this.#lock?.release()
      throw explained(error, this.#settings.path)
    }
    this.#trail = trail
  }

  async #claim() {
    const { path } = this.#settings
    // A reload runs new processes next to the old ones.
    const seats = Array.from({ length: 4 * this.#processes }, (_, index) => seatOf(path, index + 1))
    const { file, lock } = this.#processes === 1 ? { file: path, lock: await lockFile(path) } : await lockFirst(seats)
    this.#lock = lock
    return { path: file, hold: () => lock.hold() }
  }

  push(fields: string): void {
    this.#trail?.push(fields)
  }

  countRefused(): void {
    this.#trail?.countRefused()
  }

  async close(): Promise<void> {
    await this.#trail?.close()
    await this.#lock?.release()
  }
}

/** The message names the folder, which also contains the lock and full files. */
function explained(error: unknown, path: string): unknown {
  if (error instanceof StartError) return error
  const why = `the audit cannot be written in ${dirname(path)}: ${errorText(error)}`
  return new StartError(`${why}; let this user write there, or give it another \`file\``, { cause: error })
}
