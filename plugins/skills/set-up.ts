// Reads the skills folder, contributes its files, and replaces them on reload.
import { resolve } from 'node:path'
import { createAdmission } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { StartError } from '../../core/plugin.ts'
import { changedBetween, type Snapshot, snapshotOf } from './definitions.ts'
import { createMethods } from './methods.ts'
import type { SkillsOptions } from './options.ts'
import { doubtsAbout, readSkills } from './read-skills.ts'

const EXTENSION = 'io.modelcontextprotocol/skills'
/** Maximum faults in messages, and changed files in the log. */
const MAX_TOLD = 20

/** Snapshots by options: on reload, `setup` of the new host reads the folder for the options of `onReload`. */
const readFor = new WeakMap<object, Snapshot>()

async function readNow(host: InternalHost, options: SkillsOptions): Promise<Snapshot | undefined> {
  const at = [...host.config.at, 'folder']
  const folder = resolve(host.config.directory, options.folder)
  host.reads(folder)
  let faults = 0
  const skills = await readSkills(folder, options.folder, ({ message }) => {
    if (++faults <= MAX_TOLD) host.report(new StartError('MH2910', message, { at }))
  })
  if (faults > MAX_TOLD)
    host.report(new StartError('MH2910', `${faults - MAX_TOLD} more mistakes in the folder`, { at }))
  for (const { message } of skills ? doubtsAbout(skills, options.folder) : []) {
    host.report(new StartError('MH2911', message, { at }), 'warning')
  }
  return skills && snapshotOf(skills, host.log)
}

export async function setUpSkills(host: InternalHost, options: SkillsOptions): Promise<void> {
  const read = await readNow(host, options)
  if (!read) return
  readFor.set(options, read)
  let now = read
  const served = host.toolset(now.resources)
  host.extension(EXTENSION, {
    settings: { directoryRead: true },
    methods: createMethods((call, item) => createAdmission(host.services)(call, item)),
    // Clients need not declare the extension (SEP-2640, "Capability Negotiation").
    clientMustDeclare: false,
  })
  host.onReload<SkillsOptions>(changed => {
    const next = readFor.get(changed)
    if (!next) return undefined
    return () => {
      if (changedBetween(now, next, true).length === 0) return
      const files = changedBetween(now, next)
      served.replace(next.resources)
      now = next
      if (files.length === 0) return
      host.log.info(
        { code: 'MH2914', files: files.slice(0, MAX_TOLD), changed: files.length, skills: now.skills.length },
        'skills have changed',
      )
      for (const uri of files) host.runtime.resourceUpdated(uri)
    }
  })
}
