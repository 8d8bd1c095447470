// Reads the skills folder, contributes its files, and replaces them on reload.
import { resolve } from 'node:path'
import { createItemAuthorizer } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { StartError } from '../../core/plugin.ts'
import { changedBetween, type Snapshot, snapshotOf } from './definitions.ts'
import { createMethods } from './methods.ts'
import type { SkillsOptions } from './options.ts'
import { findWarnings, readSkills } from './read-skills.ts'

const EXTENSION = 'io.modelcontextprotocol/skills'
/** Maximum faults in messages, and changed files in the log. */
const MAX_LISTED = 20

/** Snapshots by options: on reload, `setup` of the new host reads the folder for the options of `onReload`. */
const snapshots = new WeakMap<object, Snapshot>()

async function readFolder(host: InternalHost, options: SkillsOptions): Promise<Snapshot | undefined> {
  const at = [...host.config.at, 'folder']
  const folder = resolve(host.config.directory, options.folder)
  host.reads(folder)
  let count = 0
  const skills = await readSkills(folder, options.folder, ({ message }) => {
    if (++count <= MAX_LISTED) host.report(new StartError('MH2910', message, { at }))
  })
  if (count > MAX_LISTED)
    host.report(new StartError('MH2910', `${count - MAX_LISTED} more mistakes in the folder`, { at }))
  for (const { message } of skills ? findWarnings(skills, options.folder) : []) {
    host.report(new StartError('MH2911', message, { at }), 'warning')
  }
  return skills && snapshotOf(skills, host.log)
}

export async function setUpSkills(host: InternalHost, options: SkillsOptions): Promise<void> {
  const read = await readFolder(host, options)
  if (!read) return
  snapshots.set(options, read)
  let current = read
  const served = host.toolset(current.resources)
  host.extension(EXTENSION, {
    settings: { directoryRead: true },
    methods: createMethods((call, item) => createItemAuthorizer(host.services)(call, item)),
    // Clients need not declare the extension (SEP-2640, "Capability Negotiation").
    clientMustDeclare: false,
  })
  host.onReload<SkillsOptions>(changed => {
    const next = snapshots.get(changed)
    if (!next) return undefined
    return () => {
      if (changedBetween(current, next, true).length === 0) return
      const files = changedBetween(current, next)
      served.replace(next.resources)
      current = next
      if (files.length === 0) return
      host.log.info(
        { code: 'MH2914', files: files.slice(0, MAX_LISTED), changed: files.length, skills: current.skills.length },
        'skills have changed',
      )
      for (const uri of files) host.runtime.resourceUpdated(uri)
    }
  })
}
