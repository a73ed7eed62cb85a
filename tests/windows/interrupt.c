/* Runs a program and ends it as a user at a console does by Ctrl-C, once a file is there: interrupt FILE PROGRAM ARGUMENT...
   FILE may have wildcards; with + before it, it must have grown as well. Says the program's status. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

static BOOL WINAPI ignore(DWORD event) {
  (void)event;
  return TRUE;
}

int main(int argc, char** argv) {
  char line[4096] = "";
  STARTUPINFOA start = {sizeof start};
  PROCESS_INFORMATION child;
  WIN32_FIND_DATAA found;
  DWORD status = 0;
  if (argc < 3) return 2;
  for (int i = 2; i < argc; ++i) {
    if (strlen(line) + strlen(argv[i]) + 2 > sizeof line) return 2;
    strcat(strcat(line, argv[i]), " ");
  }
  /* The event goes to all that share the console. */
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
  start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
  FreeConsole();
  AllocConsole();
  if (!CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &child)) return 1;
  SetConsoleCtrlHandler(ignore, TRUE);
  const int grown = argv[1][0] == '+';
  for (DWORD first = 0; WaitForSingleObject(child.hProcess, 5) == WAIT_TIMEOUT;) {
    if (FindFirstFileA(argv[1] + grown, &found) == INVALID_HANDLE_VALUE) continue;
    if (!grown || (first > 0 && found.nFileSizeLow > first)) break;
    if (first == 0) first = found.nFileSizeLow;
  }
  GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0);
  WaitForSingleObject(child.hProcess, INFINITE);
  GetExitCodeProcess(child.hProcess, &status);
  printf("status 0x%lx\n", status);
  return 0;
}
