// Starts `spmdc lsp`, and restarts it when a setting has changed.

const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

// The settings that the server reads when it starts. Empty ones are left to the programs.
function initializationOptions(settings) {
  const options = {};
  for (const name of ["mesh", "set", "entry", "warn"]) {
    const value = settings.get(name);
    if (value && Object.keys(value).length > 0) {
      options[name] = value;
    }
  }
  return options;
}

async function start() {
  const settings = workspace.getConfiguration("spmdc");
  const command = settings.get("path") || "spmdc";
  client = new LanguageClient(
    "spmdc",
    "spmdc",
    { command, args: ["lsp"] },
    { documentSelector: [{ language: "spmd" }, { pattern: "**/*.mlir" }], initializationOptions: initializationOptions(settings) },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    console.error(error);
    const message = `\`${command} lsp\` cannot be started. Install spmdc, or set the path of the command.`;
    // A restart must not wait until the message is closed.
    window.showErrorMessage(message, "Open Settings").then((chosen) => {
      if (chosen) {
        commands.executeCommand("workbench.action.openSettings", "spmdc.path");
      }
    });
  }
}

async function stop() {
  const stopped = client;
  client = undefined;
  await stopped?.stop();
}

// Changes one after the other.
let last = Promise.resolve();

function restart() {
  last = last.then(stop).then(start);
  return last;
}

exports.activate = (context) => {
  context.subscriptions.push(
    commands.registerCommand("spmdc.restart", restart),
    workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("spmdc") && restart()),
  );
  last = start();
  return last;
};

exports.deactivate = stop;
