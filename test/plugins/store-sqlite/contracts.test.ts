// The contracts of the store slots, run against one file with as many threads as there are nodes; each check with a file of
// its own.
import {
  type Check,
  eventStoreContract,
  grantStoreContract,
  sessionStoreContract,
  taskStoreContract,
} from '../../../core/testing.ts'
import { closeFiles, hasSqlite, newFile, type OpenedFile, openFile } from './support/sqlite-files.ts'

const onFile = <Service>(serviceOf: (file: OpenedFile) => Service) => ({
  shared: true,
  async open(count: number) {
    const file = newFile()
    const nodes = await Promise.all(Array.from({ length: count }, () => openFile(file)))
    return {
      nodes: nodes.map(serviceOf),
      close: async () => void (await Promise.all(nodes.map(({ writer }) => writer.close()))),
    }
  },
})

const contracts: Readonly<Record<string, readonly Check[]>> = {
  'the session store in a file': sessionStoreContract(onFile(({ sessions }) => sessions)),
  'the event store in a file': eventStoreContract(onFile(({ events }) => events)),
  'the grant store in a file': grantStoreContract(onFile(({ grants }) => grants)),
  'the task store in a file': taskStoreContract(onFile(({ tasks }) => tasks)),
}

if (hasSqlite) {
  for (const [subject, checks] of Object.entries(contracts)) {
    describe(subject, () => {
      after(closeFiles)
      for (const { name, run } of checks) it(name, run)
    })
  }
}
