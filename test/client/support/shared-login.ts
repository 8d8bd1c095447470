// Several processes that share one rotating refresh token on disk, made to need it at the same moment, round by round.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFileTokenCache } from '../../../client/node/index.ts'
import { bundledFile } from '../../support/compiled.ts'
import { startFakeServers } from './fake-servers.ts'
import type { RefreshJob, RefreshReport } from './refreshing-process.ts'
import { startClient } from './start-client.ts'

export interface SharedLogin {
  readonly processes: number
  readonly rounds: number
  readonly refreshes: number
  /** Rounds by how many refreshes they had. */
  readonly roundsByRefreshes: Readonly<Record<number, number>>
  /** Rotated refresh tokens that somebody used again: each ends the family. */
  readonly reuses: number
  readonly answers: Readonly<Record<string, number>>
}

const next = async (child: ChildProcess) => (await once(child, 'message'))[0] as RefreshReport

const count = (counts: Record<string, number>, what: string | number) => {
  counts[what] = (counts[what] ?? 0) + 1
}

/** Stops early where the login is lost. */
export async function shareLogin(about: { processes: number; rounds: number; locked: boolean }): Promise<SharedLogin> {
  const fake = await startFakeServers()
  const directory = await mkdtemp(join(tmpdir(), 'shared-login-'))
  await startClient(fake, { tokenCache: createFileTokenCache(directory) }).post()
  const job: RefreshJob = { serverUrl: fake.serverUrl, directory, locked: about.locked }
  const children = Array.from({ length: about.processes }, () =>
    fork(bundledFile('test/client/support/refreshing-process.ts'), [JSON.stringify(job)], { execArgv: [] }),
  )
  const roundsByRefreshes: Record<number, number> = {}
  const answers: Record<string, number> = {}
  let refreshes = 0
  let rounds = 0
  try {
    await Promise.all(children.map(next))
    while (rounds < about.rounds && fake.as.tokens.reuses === 0) {
      rounds++
      fake.as.tokens.expireAll()
      const before = fake.as.count('/token')
      const reports = children.map(next)
      for (const child of children) child.send('go')
      for (const report of await Promise.all(reports)) count(answers, 'status' in report ? report.status : report.code)
      const made = fake.as.count('/token') - before
      refreshes += made
      count(roundsByRefreshes, made)
    }
  } finally {
    for (const child of children) {
      const gone = once(child, 'exit')
      child.disconnect()
      await gone
    }
    await rm(directory, { recursive: true, force: true })
  }
  return { processes: about.processes, rounds, refreshes, roundsByRefreshes, reuses: fake.as.tokens.reuses, answers }
}
