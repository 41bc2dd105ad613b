//! The tutorial, command by command.

use super::{block, root, shell};

#[tokio::test]
async fn the_tutorial_works_from_beginning_to_end() {
    let tutorial = std::fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let home = shell::home();

    let first = shell::run(&home, &block(&tutorial, "first")).await;
    assert_eq!((first.code, first.stdout), (Some(0), block(&tutorial, "first-output")), "{}", first.stderr);

    let project = shell::run(&home, &block(&tutorial, "project")).await;
    assert_eq!((project.code, project.stderr.as_str()), (Some(0), ""));
    std::fs::write(home.work().join("bot/bot.py"), block(&tutorial, "examples/bot.py")).unwrap();

    let bot = shell::run(&home, &format!("cd bot\n{}", block(&tutorial, "python"))).await;
    assert_eq!((bot.code, bot.stdout), (Some(0), block(&tutorial, "python-output")), "{}", bot.stderr);

    let threads = shell::run(&home, &format!("cd bot\n{}", block(&tutorial, "threads"))).await;
    assert_eq!(threads.code, Some(0), "{}", threads.stderr);
    assert_eq!(threads.stdout.lines().filter(|line| line.contains('`')).count(), 2, "{}", threads.stdout);
}
