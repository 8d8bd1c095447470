// A skills folder with a million files behind symbolic links.
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { readSkills } from '../../../plugins/skills/read-skills.ts'
import { removeFolders } from '../../config/folder.ts'
import { skill, writeSkills } from './serve-skills.ts'

describe('Large skills folder', () => {
  after(removeFolders)

  it('stops the scan at 50,000 entries', async () => {
    const folder = await writeSkills({ 'demo/SKILL.md': skill('demo'), 'demo/6/x.md': 'x' })
    // Ten links in each of six folders, each to the next.
    for (const level of [0, 1, 2, 3, 4, 5]) {
      const at = join(folder, 'skills/demo', String(level))
      await mkdir(at)
      for (let link = 0; link < 10; link++) await symlink(`../${level + 1}`, join(at, String(link)))
    }
    const faults: string[] = []
    await readSkills(join(folder, 'skills'), 'skills', ({ message }) => faults.push(message))
    expect(faults.join()).to.include('more than 50,000 files and folders')
  })
})
